#include "muster/parallel/run/run_session.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "muster/core/base/log.h"
#include "muster/core/base/plural.h"
#include "muster/core/io/model_file.h"
#include "muster/parallel/run/detail/keep_network.h"
#include "muster/parallel/run/detail/preparation.h"
#include "muster/parallel/run/detail/resuming.h"
#include "muster/parallel/run/detail/session_parts.h"

namespace muster {

namespace {

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
  parts_->watching.options(detail::hyperParameters(run()),
                           {network().task() == Task::Regression ? "r2" : "accuracy"});
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
                                        saveModel(network(), path, detail::notesOf(run()));
                                        return true;
                                      }});
}

void RunSession::save(bool failed) {
  if ((failed || interrupted_) && untrained()) return sink_("ended before the first step: nothing was saved");
  const auto& watchers = parts_->watchers;
  watchers.diverged->requireNone(network());
  // If early stopping restored the best state, the training state does not belong to the model.
  const bool restored =
      watchers.stopping && run().listeners.earlyStopping->restoreBest && watchers.stopping->best();
  if (!restored && watchers.last->state) network().trainingState() = *watchers.last->state;
  detail::writeHereOrElsewhere(run().training.model, [&](const std::filesystem::path& path) {
    saveModel(network(), path, detail::notesOf(run()));
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
  if (scores.test && first) {
    const auto [score, value] = scores.test->mainScore();
    parts_->watching.result(score, value);
  }
  return scores;
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
