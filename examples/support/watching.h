#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "examples/support/command_line.h"
#include "examples/support/paths.h"
#include "muster/core/listeners/evaluation_listener.h"
#include "muster/core/listeners/watch/hyper_parameter.h"

namespace example {

/// What a program shows of its training while it runs.
struct WatchOptions {
  std::filesystem::path tensorBoard = {};  ///< empty: not
  bool page = false;
  bool terminal = false;              ///< rows of the workers and a curve, below the progress bar
  int pagePort = 0;                   ///< 0: any that is free
  std::filesystem::path curves = {};  ///< a file for `muster page`; empty: none
  std::string group = {};             ///< of that file
  bool still = false;                 ///< whether `Watching::still` will be asked for

  /// Adds the options that go here, as a group of their own; those of one training alone if `live`.
  void describe(CommandLine& line, bool live = true);
  void addTo(Paths& paths) const;
  /// When they have been read. @throws muster::InvalidArgument for a port without a page, or what --quiet
  /// hides.
  static void check(const CommandLine& line);
  /// Adds what shows the progress in the terminal. @param lastEpoch  as of muster::ProgressOptions.
  void addProgress(muster::Listeners& all, std::optional<std::int64_t> lastEpoch = {}) const;
};

/// Something that shows a training.
class Watcher {
 public:
  virtual ~Watcher() = default;
  virtual muster::Listeners listeners() = 0;
  virtual void text(std::string_view name, std::string_view text) = 0;
  /// @param results  names that `result` is called with later.
  virtual void options(const std::vector<muster::HyperParameter>& options,
                       const std::vector<std::string>& results, std::string_view group) = 0;
  virtual void result(std::string_view name, double value) = 0;
  /// As one HTML file; "" if it is none.
  virtual std::string still(const std::string& document) = 0;
};

/// @throws muster::InvalidArgument if this build has no such module; muster::FileError.
std::unique_ptr<Watcher> tensorBoardWatcher(const std::filesystem::path& directory,
                                            std::shared_ptr<const muster::EvaluationListener> tests = {});

/// Of `options.page`, `curves` and `still`. Prints the address. Null if it is for `still` alone and this
/// build has no page.
std::unique_ptr<Watcher> pageWatcher(const WatchOptions& options,
                                     std::shared_ptr<const muster::EvaluationListener> tests = {});

/// All that the options ask for.
class Watching {
 public:
  /// @param tests  whose results are shown; may be null. It comes earlier in the list of listeners.
  /// @throws as the functions above.
  explicit Watching(const WatchOptions& options,
                    std::shared_ptr<const muster::EvaluationListener> tests = {});

  void addTo(muster::Listeners& all) const;
  /// The plan in words, and the network as a table.
  void describe(std::string_view plan, std::string_view network) const;
  void options(const std::vector<muster::HyperParameter>& options, const std::vector<std::string>& results,
               std::string_view group = {}) const;
  void result(std::string_view name, double value) const;
  /// The page so far as one HTML file; "" if this build has no page.
  /// @param document  JSON of what is beside the curves, as muster::stillPage has it.
  std::string still(const std::string& document) const;

 private:
  std::vector<std::unique_ptr<Watcher>> watchers_;
};

}  // namespace example
