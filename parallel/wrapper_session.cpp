#include "muster/parallel/wrapper_session.h"

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "muster/core/base/error.h"
#include "muster/core/base/log.h"
#include "muster/core/base/plural.h"
#include "muster/core/device/memory_room.h"
#include "muster/core/listeners/node_listener.h"
#include "muster/core/nn/mask_remark.h"
#include "muster/core/nn/plan_remark.h"
#include "muster/core/nn/scale_remark.h"
#include "muster/core/nn/shown_progress.h"
#include "muster/core/nn/state_recorder.h"
#include "muster/parallel/agreement.h"
#include "muster/parallel/nodes/elastic/elastic_nodes.h"
#include "muster/parallel/nodes/node_link.h"
#include "muster/parallel/runtime/watched_iterator.h"
#include "muster/parallel/strategies/option_fields.h"
#include "muster/parallel/training/named_call.h"

namespace muster {
namespace {

/// The batches of a round late in a long training.
std::int64_t batchesInRound(const ParallelOptions& options, int workers) {
  const auto plan = options.strategy.make()->plan({.workers = workers, .iteration = detail::kMostIterations});
  return plan.iterations * workers;
}

std::vector<StallWatch::Subject> watchedThreads(const ReplicaSet& replicas, const Activity& caller,
                                                const Activity& reading) {
  std::vector<StallWatch::Subject> all = {{"the caller", &caller}, {"the reader", &reading}};
  for (const auto* thread : replicas.threads())
    all.push_back({fmt::format("worker {}", thread->index()), &thread->activity()});
  return all;
}

/// With W workers a schedule over iterations takes W times as many batches.
std::string remarkOnSchedule(const Schedule& rate, int workers) {
  const std::int64_t length = rate.iterations().value_or(0);
  if (length == 0 || workers == 1) return "";
  return fmt::format("the learning rate's schedule ({}) ends after {} iterations ({} batches)", rate.type(),
                     length, length * workers);
}

/// The listener that `reportScoreAfterAveraging(true)` adds.
class ReportListener final : public Listener {
 public:
  void onMerge(const MergeEvent& event) override {
    logInfo("iteration {}: score {:.6f} after averaging in {:.3f} ms", event.iteration, event.score,
            std::chrono::duration<double, std::milli>(event.mergeTime).count());
  }
};

}  // namespace

Listeners listenersHere(Listeners listeners, bool report, int node) {
  if (report) listeners.push_back(std::make_shared<ReportListener>());
  if (node == 0) listeners = detail::withProgress(std::move(listeners));
  if (node > 0)
    std::erase_if(listeners, [](const auto& one) {
      return one->scope() == ListenerScope::Merged && dynamic_cast<const NodeListener*>(one.get()) == nullptr;
    });
  for (const auto& one : listeners)
    if (auto* const everywhere = dynamic_cast<NodeListener*>(one.get())) everywhere->setNode(node);
  return recordersLast(std::move(listeners));
}

detail::Internals internalsOf(const ParallelOptions& options) {
  return options.internals ? *options.internals : detail::Internals{};
}

WrapperSession::WrapperSession(Model& model, const ParallelOptions& options, const Placements& placements,
                               Activity& caller, const Activity& reading)
    : model_(model),
      options_(options),
      placements_(placements),
      caller_(caller),
      link_(options.nodes.elastic() ? options.nodes.elastic()->link() : nullptr),
      listeners_(listenersHere(options.listeners, options.reportScoreAfterAveraging, options.nodes.node())),
      replicas_(model, placements.workers, options.threadsPerWorker, options.strategy, options.nodes.link(),
                options.groups, internalsOf(options)),
      watch_(watchedThreads(replicas_, caller, reading), internalsOf(options).stallPatience) {}

std::optional<MemoryNeed> WrapperSession::memoryNeed() const {
  const bool onCpu = std::ranges::all_of(placements_.workers, &Device::isCpu, &Placement::device);
  if ((!onCpu && !replicas_.mirrored()) || model_.blocks().empty()) return {};
  return MemoryNeed(model_, replicas_.strategy(), replicas_.place(), options_.groups,
                    {.onCpu = onCpu, .mirrored = replicas_.mirrored()});
}

void WrapperSession::makeReplicas(const Batch& first, bool training) {
  const auto root = internalsOf(options_).root;
  const auto room = memoryRoom(root);
  if (auto need = room ? memoryNeed() : std::nullopt) {
    if (first.examples() > 0) {
      need->addBatches(first, options_.prefetchBuffer + options_.workers);
      if (need->stepsMayExceed(*room))
        need->addStep(model_, first, training,
                      {.threads = options_.threadsPerWorker, .mathMode = options_.mathMode});
    }
    need->requireRoom(root);
  }
  replicas_.make();
}

void WrapperSession::fitBeforeTraining(DataSetIterator& users) {
  caller_.set(Activity::Kind::InIterator);
  callForTraining([] { return "the training could not begin"; }, [&] { model_.fitBeforeTraining(users); });
}

bool WrapperSession::prepareModel(DataSetIterator& data, std::int64_t epoch, const EpochPosition& begun,
                                  Batch& first) {
  WatchedIterator reading(data, caller_);
  const auto readFirst = [&] {
    first.stamp.firstExample = reading.reset(epoch, begun);
    return reading.next(first);
  };
  if (!callForTraining([&] { return reading.failure(); }, readFirst)) return false;
  callForTraining([] { return "the model could not be prepared for its first batch"; },
                  [&] {
                    model_.prepare(first);
                    if (model_.iteration() > 0) return;
                    for (const auto& remark : {scaleRemark(model_, first), maskRemark(model_, first)})
                      if (!remark.empty()) logWarning("fit: {}", remark);
                  });
  return true;
}

PreparedFit WrapperSession::prepareFit(DataSetIterator& users, DataSetIterator& data, std::int64_t epochs,
                                       FitParts* parts) {
  NodeLink* const link = options_.nodes.link();
  if (link) link->requireWhole();
  PreparedFit fit;
  fit.resumed = namingResumedFile(
      model_, [&] { return resumptionOf(model_, data, options_.strategy, replicas_.place().workers()); });
  const EpochPosition& begun = fit.resumed.ledger.begun;
  std::optional<Batch>& first = fit.first;
  if (parts && parts->first && model_.epoch() == 0 && begun.nextBatch == 0)
    first = parts->first;
  else
    fitBeforeTraining(users);
  if (!replicas_.made()) {
    if (!first && !prepareModel(data, model_.epoch(), begun, first.emplace())) first.reset();
    require(first || !model_.blocks().empty(), "fit: the data set has no batches");
    caller_.set(Activity::Kind::WaitingForWorkers);
    makeReplicas(first.value_or(Batch()), true);
  }
  caller_.set(Activity::Kind::WaitingForWorkers);
  if (link)
    requireAgreement(*link, {options_, model_, data, epochs, begun.nextBatch, first ? &*first : nullptr});
  namingResumedFile(model_, [&] { replicas_.begin(fit.resumed); });
  if (parts) parts->first.reset();
  if (placements_.noCoreForReader && begun.trainedLater.empty() && !replicas_.traits().arrivals)
    fit.numbered = callIterator("number its batches", [&] { return data.numbered(); });
  return fit;
}

std::string WrapperSession::plan() const {
  const NodePlace& place = replicas_.place();
  const auto need = memoryNeed();
  std::string text =
      place.nodes > 1 ? fmt::format("node {} of {}: ", place.node, place.nodes) : std::string();
  text +=
      fmt::format("{}, {}", describe(placements_, options_.threadsPerWorker, need ? need->describe() : ""),
                  replicas_.strategy().describe());
  if (const auto merging = replicas_.merging(); !merging.empty()) text += ", " + merging;
  text +=
      fmt::format(": {} per round", plural(batchesInRound(options_, place.workers()), "batch", "batches"));
  const auto* const remark = dynamic_cast<const PlanRemark*>(&model_);
  const Schedule& rate = model_.trainingOptions().updater.learningRate();
  for (const auto& more :
       {remark ? remark->planRemark() : std::string(), remarkOnSchedule(rate, place.workers())})
    if (!more.empty()) text += "; " + more;
  return text;
}

}  // namespace muster
