#pragma once

#include <exception>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "muster/core/listeners/evaluation_listener.h"
#include "muster/core/listeners/watch/hyper_parameter.h"

namespace muster::detail {

/// Options for monitoring a training while it runs.
struct WatchOptions {
  std::filesystem::path tensorBoard = {};  ///< empty: not used
  bool shared = false;                     ///< other processes write into `tensorBoard`, too
  bool page = false;
  int pagePort = 0;                   ///< 0: any free port
  std::filesystem::path curves = {};  ///< a file for `muster page`; empty: none
  std::string group = {};             ///< group in that file
  bool still = false;                 ///< whether `Watching::still` will be called
  /// Without `curves`: where the page's curves are kept for `still`.
  std::filesystem::path stillCurves = {};
};

/// A tool that shows a training: TensorBoard or the page.
class Watcher {
 public:
  virtual ~Watcher() = default;
  virtual Listeners listeners() = 0;
  virtual void text(std::string_view name, std::string_view text) = 0;
  /// @param results  names for later calls of `result`.
  virtual void options(const std::vector<HyperParameter>& options, const std::vector<std::string>& results,
                       std::string_view group) = 0;
  virtual void result(std::string_view name, double value) = 0;
  /// Called if the training ended early.
  virtual void failed(const std::exception_ptr& failure) = 0;
  /// The training as one HTML file; "" if not a page.
  virtual std::string still(const std::string& document) = 0;
};

/// Whether this program was built with the page.
bool pagesBuilt();
/// Whether this program was built with TensorBoard.
bool tensorBoardBuilt();

/// The messages if it was not.
inline constexpr const char* kNoPage =
    "this program was built without the page, which needs dygraphs; install libjs-dygraphs and build it "
    "again";
inline constexpr const char* kNoTensorBoard =
    "this program was built without TensorBoard, which needs protobuf; install libprotobuf-dev and "
    "protobuf-compiler and build it again";

/// The watcher for `options.tensorBoard`.
/// @throws InvalidArgument if this build has no such module; FileError.
std::unique_ptr<Watcher> tensorBoardWatcher(const WatchOptions& options,
                                            std::shared_ptr<const EvaluationListener> tests = {});

/// The watcher for `options.page`, `curves` and `still`. Prints the address.
/// @throws InvalidArgument if this build has no page; FileError.
std::unique_ptr<Watcher> pageWatcher(const WatchOptions& options,
                                     std::shared_ptr<const EvaluationListener> tests = {});

/// All watchers that the options request.
class Watching {
 public:
  /// @param tests  the listener whose results are shown; may be null. It must come earlier in the list of
  ///         listeners.
  /// @throws as the functions above.
  explicit Watching(const WatchOptions& options, std::shared_ptr<const EvaluationListener> tests = {});

  void addTo(Listeners& all) const;
  /// Shows the plan as a sentence and the network as a table.
  void describe(std::string_view plan, std::string_view network) const;
  void options(const std::vector<HyperParameter>& options, const std::vector<std::string>& results,
               std::string_view group = {}) const;
  void result(std::string_view name, double value) const;
  /// Calls `train`; shows an exception, then rethrows it.
  void during(const std::function<void()>& train) const;
  /// The page so far as one HTML file; "" without WatchOptions::still.
  /// @param document  the `document` of stillPage.
  std::string still(const std::string& document) const;

 private:
  std::vector<std::unique_ptr<Watcher>> watchers_;
};

}  // namespace muster::detail
