#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "examples/support/published_data.h"
#include "muster/core/device/context.h"
#include "muster/core/io/json_fields.h"
#include "muster/core/listeners/monitored.h"
#include "muster/datasets/image_placement.h"
#include "muster/parallel/strategies/any_strategy.h"

namespace program {

/// A run, as `run.json` describes it: examples/README.md has all fields. Paths are relative to the
/// working directory; "" is none.
struct RunData {
  std::string type = {};  ///< one of kDataTypes
  // the published ones (example::kPublishedData)
  std::string directory = {};  ///< of the files; "": MUSTER_DATA_DIR, the cache, or a download
  // these, generated and mixtures; 0: all, else each class in equal shares
  std::int64_t trainExamples = 0;
  /// As trainExamples. Of the other types: held out of the training examples, for data without a test set.
  std::int64_t testExamples = 0;
  // idx
  std::string trainImages = {}, trainLabels = {}, testImages = {}, testLabels = {};
  std::int64_t classes = 10;
  // csv, safetensors and images; a directory for images
  std::string train = {}, test = {};
  // csv
  bool header = true;
  std::string label = {};
  std::string separator = ",";
  bool regression = false;
  std::vector<std::string> columns = {};   ///< to learn from; empty: all but the label
  std::vector<std::string> leaveOut = {};  ///< not to learn from
  // images
  bool grey = false;
  std::int64_t height = 0, width = 0;  ///< to which all are stretched; 0: all must have one size
  // all
  std::int64_t validationExamples = 0;  ///< held out from the training examples, for listeners: drawn by the
                                        ///< seed, each class in equal shares
  std::int64_t splitSeed = -1;          ///< the seed that draws what is held out; -1: `seed`
  std::int64_t batch = 128;
  bool dropLast = false;    ///< leaves out the last batch of a training epoch if it is not full
  std::int64_t seed = 123;  ///< for the order of the training examples
  bool shuffle = true;
  std::vector<double> classWeights = {};
};

inline constexpr std::string_view kMathModes[] = {"auto", "fp32", "tf32", "bf16"};

/// MNIST, or generated digits if it is neither found nor fetched.
inline constexpr std::string_view kMnistOrGenerated = "mnistOrGenerated";

inline constexpr auto kDataTypes = [] {
  constexpr std::array<std::string_view, 7> others{kMnistOrGenerated, "generated",  "mixtures", "idx", "csv",
                                                   "images",          "safetensors"};
  std::array<std::string_view, example::kPublishedData.size() + others.size()> all{};
  std::ranges::copy(others, std::ranges::copy(example::kPublishedData, all.begin()).out);
  return all;
}();

struct RunTraining {
  std::int64_t workers = 1;
  std::string strategy = "averaging";  ///< by its name
  std::string strategyOptions = {};    ///< for example "rate=0.7,every=100"
  std::int64_t epochs = 1;             ///< total, including those of a resumed file
  std::int64_t prefetch = 16;
  std::int64_t threadsPerWorker = 1;
  bool pinThreads = true;
  bool reportScore = false;
  std::string devices = "auto";  ///< auto, or as in --device: "cpu", "cuda:0,cuda:1"
  muster::PlacementWish placement = muster::PlacementWish::Auto;
  std::string mathMode = "auto";  ///< auto: the device's default; or as in --math-mode
  std::int64_t groups = 1;
  /// none, mpi, gloo or elastic; auto: as --store, --min-nodes, the environment and the launcher say
  std::string nodes = "auto";
  std::string initialModel = {};  ///< model file with the same layers to start from
  std::string resume = {};        ///< a checkpoint or a directory of checkpoints
  std::string model = "model.safetensors";
};

/// What early stopping or the best checkpoint monitors.
struct RunMonitor {
  muster::Monitor monitor = muster::Monitor::Loss;
  std::string mode = {};  ///< min or max; "": the monitor's
};

struct RunCheckpoints {
  std::string directory = {};
  std::int64_t everyEpochs = 1, everyIterations = 0;
  double everyMinutes = 0;
  std::int64_t keepLast = 0, keepEveryEpochs = 0;
  std::optional<RunMonitor> best = {};
};

struct RunEarlyStopping {
  RunMonitor monitored = {};
  std::int64_t everyEpochs = 1, patience = 5;
  double minImprovement = 0, maxMinutes = 0;
  bool restoreBest = true;
  std::string bestFile = {};
};

struct RunPlateau {
  RunMonitor monitored = {};
  double factor = 0.1;
  std::int64_t patience = 10;
  double minImprovement = 0, minFactor = 0;
};

struct RunListeners {
  bool progress = true;
  std::int64_t scoreEvery = 0;      ///< iterations; 0: no lines
  std::int64_t testEvery = 0;       ///< epochs; 0: not by epochs
  std::int64_t testIterations = 0;  ///< 0: not by iterations
  std::string report = {};          ///< a directory for report.html
  std::string tensorBoard = {};     ///< a directory for this run's event file
  bool page = false;                ///< serve a page to browsers on this machine
  std::int64_t pagePort = 0;        ///< 0: any free port
  std::string curves = {};          ///< file for `muster page`; its name ends in .curves.jsonl
  std::string group = {};           ///< for that file: the page draws the mean of a group
  std::optional<RunCheckpoints> checkpoints = {};
  std::optional<RunEarlyStopping> earlyStopping = {};
  std::optional<RunPlateau> reduceOnPlateau = {};
};

struct RunFile {
  static constexpr std::string_view kFormat = "muster-run/1";

  RunData data;
  std::string network;  ///< JSON, as in a model file
  RunTraining training;
  RunListeners listeners;

  /// @param sets  for example "training.strategy.rate=0.7": replaces the text's field; the value is JSON or
  ///              else a word.
  /// @throws InvalidArgument naming the field that is unknown (with the nearest known one), missing, of the
  ///         wrong type or out of range. If the text is a result, reads its `configuration`.
  static RunFile parse(std::string_view json, std::span<const std::string> sets = {});
  /// As above, from a file. @throws FileError if it cannot be read.
  static RunFile read(const std::string& path, std::span<const std::string> sets = {});

  /// Writes it as the fields of an object, the strategy with all its options.
  void write(muster::JsonWriter& json) const;
  std::string toJson() const;

  /// The strategy over all nodes. @throws InvalidArgument.
  muster::AnyStrategy makeStrategy(int nodes) const;
};

/// The value of `training.mathMode`; empty: the device's default.
std::optional<muster::MathMode> mathModeOf(const RunTraining& training);

/// All fields by path, such as {"training.workers", "4"}, with their values as JSON.
std::vector<std::pair<std::string, std::string>> fieldsOf(const RunFile& run);

/// The fields that decide a training's bits, by path, such as {"training.workers", "4"}.
std::vector<std::pair<std::string, std::string>> decisiveFields(const RunFile& run);

/// Whether a run may resume one in which this decisive field has another value.
bool mayDiffer(std::string_view path);

}  // namespace program
