#include "muster/parallel/wrapper_session.h"

#include <vector>

#include "muster/core/base/plural.h"
#include "muster/core/device/memory_room.h"
#include "muster/core/nn/plan_remark.h"
#include "muster/parallel/nodes/elastic/elastic_nodes.h"
#include "muster/parallel/nodes/node_link.h"
#include "muster/parallel/strategies/option_fields.h"

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

}  // namespace

detail::Internals internalsOf(const ParallelOptions& options) {
  return options.internals ? *options.internals : detail::Internals{};
}

WrapperSession::WrapperSession(Model& model, const ParallelOptions& options, const Placements& placements,
                               const Activity& caller, const Activity& reading)
    : model_(model),
      options_(options),
      placements_(placements),
      link_(options.nodes.elastic() ? options.nodes.elastic()->link() : nullptr),
      strategy_(options.strategy.make()),
      replicas_(model, placements.workers, options.threadsPerWorker, *strategy_,
                ReplicaSet::NodeOptions{.link = options.nodes.link(), .groups = options.groups},
                internalsOf(options)),
      watch_(watchedThreads(replicas_, caller, reading), internalsOf(options).stallPatience) {}

std::optional<MemoryNeed> WrapperSession::memoryNeed() const {
  return needOnHost(model_, *strategy_, placements_, replicas_.place(), options_.groups,
                    replicas_.mirrored());
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

std::string WrapperSession::plan() const {
  const NodePlace& place = replicas_.place();
  const auto need = memoryNeed();
  std::string text =
      place.nodes > 1 ? fmt::format("node {} of {}: ", place.node, place.nodes) : std::string();
  text +=
      fmt::format("{}, {}", describe(placements_, options_.threadsPerWorker, need ? need->describe() : ""),
                  strategy_->describe());
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
