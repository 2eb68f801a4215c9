#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "muster/core/listeners/evaluation_listener.h"
#include "muster/core/listeners/line_sink.h"
#include "muster/core/listeners/watch/hyper_parameter.h"
#include "muster/core/listeners/watch/page/page_server.h"
#include "muster/core/nn/listener.h"

namespace muster {

/// Options of a PageListener.
struct PageOptions {
  int port = 0;       ///< on 127.0.0.1; 0: any that is free
  bool serve = true;  ///< false: for `still()` and `curves` alone
  /// A file for this run's curves, whose name ends in ".curves.jsonl": `muster page DIRECTORY` shows it
  /// together with others. An existing file is replaced when `fit()` begins. If the model was trained
  /// before, as one from a checkpoint, and the file is of a network with the same layers, the file's curves
  /// up to the model's iteration stay, and the page shows them, too; else a warning says why they begin anew,
  /// and the old file is kept with `.old` (or `.old-2` and so on) after its name. Empty: none.
  std::filesystem::path curves = {};
  std::string group =
      {};  ///< of that file: runs of one group are drawn as their mean, as those of several seeds
  /// Its results are shown. Put it earlier in the list of listeners.
  std::shared_ptr<const EvaluationListener> evaluation = {};
  LineSink sink = {};  ///< receives the lines with the address
  /// Scores and merge events are read at most this often; a score is the mean since the last reading.
  std::chrono::nanoseconds readEvery = std::chrono::milliseconds(50);
  PageLimits limits = {};
};

/// Serves a page that shows a training while it runs, for a browser on this machine:
///
///     auto page = std::make_shared<PageListener>();
///     auto wrapper = ParallelWrapper::Builder(model).workers(2).listeners({page, page->workers()}).build();
///     page->text("plan", wrapper.plan());
///
/// It also shows this machine's processor, cores and memory. The constructor prints the address, with a
/// token, and a line for `ssh` that reaches it from another machine. The page exists as long as the
/// listener.
///
/// Watching changes no bit of the training, and a client cannot make it wait: the listener puts numbers into
/// a buffer of fixed size. Histograms are taken from the merged copy, at most once per second and at the ends
/// of epochs, and seldom enough to cost less than 1/2000 of the time; those of the last round of a `fit()` at
/// most 1/20 of it.
///
/// Thread-safe. Link with muster::page, which needs Boost.Beast and dygraphs where muster is built.
class PageListener final : public Listener {
 public:
  /// @throws InvalidArgument for a port that is in use, out of range or not allowed, or a file of curves of
  ///         another name; FileError if that cannot be written.
  explicit PageListener(PageOptions options = {});
  ~PageListener() override;

  /// A second listener for the list, for the scores of the first 64 workers. On a GPU each step then waits
  /// for the score of the last one.
  std::shared_ptr<Listener> workers();

  void text(std::string_view name, std::string_view text);
  void point(std::string_view name, std::int64_t iteration, double value);
  /// The run's options, in a table.
  void hyperParameters(const std::vector<HyperParameter>& parameters);

  /// Records why `fit()` threw. Of a training that diverged the score has a last value that is no number:
  ///
  ///     try { wrapper.fit(train); } catch (...) { page->failed(std::current_exception()); throw; }
  void failed(const std::exception_ptr& failure);

  /// The page as it is now, as one HTML file (`stillPage`).
  /// @param document  JSON for the page, in the form that `stillPage` describes; "": none.
  std::string still(const std::string& document = {});

  /// For a browser, with the token. Of a page that is served, as `port`.
  std::string address() const;
  int port() const;

  bool readsDivergence() const override { return true; }
  void onFitStart(const FitEvent& event) override;
  void onEpochStart(const EpochEvent& event) override;
  void onMerge(const MergeEvent& event) override;
  void onEpochEnd(const EpochEvent& event) override;
  void onFitEnd(Trainer& trainer) override;

 private:
  struct State;
  class Workers;
  std::shared_ptr<State> state_;
};

}  // namespace muster
