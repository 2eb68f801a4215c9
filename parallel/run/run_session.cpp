#include "muster/parallel/run/run_session.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "muster/core/base/log.h"
#include "muster/core/base/plural.h"
#include "muster/core/io/model_file.h"
#include "muster/parallel/run/detail/keep_network.h"
#include "muster/parallel/run/detail/preparation.h"
#include "muster/parallel/run/detail/saved_data.h"
#include "muster/parallel/run/detail/session_parts.h"

namespace muster {
namespace {

/// The score that a training is judged by, as in "test accuracy".
std::string resultName(const Network& network, const LoadedData& data) {
  return fmt::format("{} {}", data.test ? "test" : "validation",
                     network.task() == Task::Regression ? "R2" : "accuracy");
}

std::unique_ptr<detail::SessionParts> partsOf(PreparedRun& prepared, const SessionOptions& options) {
  const bool overNodes = prepared.overNodes();
  auto watchers =
      detail::watch(prepared.run, prepared.data, *prepared.network,
                    {.progress = options.progress, .overNodes = overNodes, .terminal = options.terminal});
  auto watching = detail::watchingOf(prepared.run, watchers, prepared.first(), overNodes);
  watching.addTo(watchers.all);
  watchers.all.insert(watchers.all.end(), options.listeners.begin(), options.listeners.end());
  return std::make_unique<detail::SessionParts>(
      detail::SessionParts{std::move(watchers), std::move(watching)});
}

}  // namespace

RunSession::RunSession(PreparedRun prepared, const SessionOptions& options)
    : prepared_(std::move(prepared)),
      sink_(options.sink ? options.sink : [](std::string_view line) { logInfo("{}", line); }),
      begun_(network().iteration()),
      epochsBefore_(network().epoch()),
      parts_(partsOf(prepared_, options)),
      wrapper_(detail::makeWrapper(run(), prepared_.devices, prepared_.nodes, network(), parts_->watchers.all,
                                   prepared_.nodeCount)) {
  parts_->watching.describe(wrapper_.plan(), network().summary());
  parts_->watching.options(detail::hyperParameters(run()), {resultName(network(), data())});
}

RunSession::RunSession(RunFile run, Listeners listeners)
    : RunSession(detail::prepareRun(std::move(run), detail::NodeOptions(), detail::requireOwnDirectory),
                 {.listeners = std::move(listeners)}) {}

RunSession::~RunSession() = default;

void RunSession::train(const std::stop_token& stop) {
  const Nodes& nodes = prepared_.nodes;
  const auto saves = [&] { return nodes.node() == detail::savingNode(nodes); };
  detail::trainAndSave(
      [&] {
        parts_->watching.during([&] {
          wrapper_.fit(data().training(),
                       std::max<std::int64_t>(run().training.epochs - network().epoch(), 0), stop);
        });
        interrupted_ = detail::onAnyNode(nodes, stop.stop_requested());
      },
      [&](bool failed) {
        if (saves()) save(failed);
      },
      detail::learningRateOf(run()), {run().training.model, [&](const std::filesystem::path& path) {
                                        if (!saves() || untrained()) return false;
                                        saveModel(network(), path, detail::notesOf(run(), data()));
                                        return true;
                                      }});
}

void RunSession::save(bool failed) {
  if ((failed || interrupted_) && untrained()) return sink_("ended before the first step: nothing was saved");
  const auto& watchers = parts_->watchers;
  watchers.diverged->requireNone(network());
  // If early stopping restored the best state, the training state does not belong to the model.
  if (!restoredEpoch() && watchers.last->state) network().trainingState() = *watchers.last->state;
  detail::writeHereOrElsewhere(run().training.model, [&](const std::filesystem::path& path) {
    saveModel(network(), path, detail::notesOf(run(), data()));
  });
  saved_ = true;
  if (failed)
    sink_(fmt::format("saved: {}, with what was trained before the failure{}", run().training.model,
                      prepared_.first() ? "" : ", by this node, because node 0 is lost"));
}

RunScores RunSession::evaluate() {
  RunScores scores;
  const bool first = prepared_.first();
  if ((prepared_.nodes.elastic() && !first) || (interrupted_ && untrained())) return scores;
  if (data().validation) scores.validation = wrapper_.evaluateTask(*data().validation);
  if (data().test) scores.test = wrapper_.evaluateTask(*data().test);
  if (first && (scores.test || scores.validation))
    parts_->watching.result(resultName(network(), data()), scores.judged().mainScore().second);
  return scores;
}

std::int64_t RunSession::epochsFinished() const {
  const auto& record = *parts_->watchers.record;  // its epochs are not taken back
  return record.firstEpoch() == 0 ? network().epoch() : record.firstEpoch() - 1 + std::ssize(record.scores());
}

std::optional<std::int64_t> RunSession::restoredEpoch() const {
  const auto* const stopping = earlyStopping();
  if (stopping == nullptr || !run().listeners.earlyStopping->restoreBest || !stopping->best()) return {};
  return stopping->best()->epoch;
}

const PerformanceReport& RunSession::performance() const {
  return parts_->watchers.performance->report();
}

const EarlyStopping* RunSession::earlyStopping() const {
  return parts_->watchers.stopping.get();
}

std::string RunSession::interruption() const {
  if (!interrupted_) return {};
  return fmt::format("interrupted, with {} of {} finished", network().epoch(),
                     plural(run().training.epochs, "epoch"));
}

}  // namespace muster
