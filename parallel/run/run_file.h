#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "muster/core/io/json_fields.h"
#include "muster/core/listeners/monitored.h"
#include "muster/datasets/image_placement.h"
#include "muster/datasets/source/data_source.h"
#include "muster/parallel/strategies/any_strategy.h"

namespace muster {

/// How a run file trains: all fields are in the guide about run files. Paths are relative to the working
/// directory; "" is none.
struct RunTraining {
  std::int64_t workers = 1;
  std::string strategy = "averaging";  ///< by its name
  std::string strategyOptions = {};    ///< for example "rate=0.7,every=100"
  std::int64_t epochs = 1;             ///< total, including those of a resumed file
  std::int64_t prefetch = 16;
  std::int64_t threadsPerWorker = 1;
  bool pinThreads = true;
  bool reportScore = false;
  std::string devices = "auto";  ///< auto, or as in "cpu" or "cuda:0,cuda:1"
  PlacementWish placement = PlacementWish::Auto;
  std::string mathMode = "auto";  ///< auto (the device's default), fp32, tf32 or bf16
  std::int64_t groups = 1;
  /// none, mpi, gloo or elastic; auto: as the launcher, MUSTER_STORE and MUSTER_MIN_NODES say
  std::string nodes = "auto";
  std::string initialModel = {};  ///< model file with the same layers to start from
  std::string resume = {};        ///< a checkpoint or a directory of checkpoints
  std::string model = "model.safetensors";
};

/// What early stopping or the best checkpoint monitors.
struct RunMonitor {
  Monitor monitor = Monitor::Loss;
  std::string mode = {};  ///< min or max; "": the monitor's
};

/// Checkpoints of a training, as in CheckpointListener; 0: not by that measure.
struct RunCheckpoints {
  std::string directory = {};
  std::int64_t everyEpochs = 1, everyIterations = 0;
  double everyMinutes = 0;
  std::int64_t keepLast = 0, keepEveryEpochs = 0;
  std::optional<RunMonitor> best = {};
};

/// When a training ends early, as in EarlyStopping.
struct RunEarlyStopping {
  RunMonitor monitored = {};
  std::int64_t everyEpochs = 1, patience = 5;
  double minImprovement = 0, maxMinutes = 0;
  bool restoreBest = true;
  std::string bestFile = {};
};

/// Lowers the learning rate where the monitored value stays, as in ReduceOnPlateau.
struct RunPlateau {
  RunMonitor monitored = {};
  double factor = 0.1;
  std::int64_t patience = 10;
  double minImprovement = 0, minFactor = 0;
};

/// What watches a training: its tests, files, checkpoints and pages. An empty path is no file.
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

/// A training as a run file describes it: data, network, training and listeners.
struct RunFile {
  static constexpr std::string_view kFormat = "muster-run/1";

  DataSource data;
  std::string network;  ///< JSON, as in a model file
  RunTraining training;
  RunListeners listeners;

  /// @param overrides  each for example "training.strategy.rate=0.7", in place of the text's field; the value
  ///                   is JSON or else a word.
  /// @throws InvalidArgument naming the field that is unknown (with the nearest known one), missing, of the
  ///         wrong type or out of range. If the text is a result, reads its `configuration`.
  static RunFile parse(std::string_view json, std::span<const std::string> overrides = {});
  /// As above, from a file, which an error names unless one of `overrides` is to blame.
  /// @throws FileError if it cannot be read.
  static RunFile read(const std::filesystem::path& path, std::span<const std::string> overrides = {});

  /// Writes it as the fields of an object, the strategy with all its options.
  void write(JsonWriter& json) const;
  std::string toJson() const;

  /// The strategy over all nodes. @throws InvalidArgument.
  AnyStrategy makeStrategy(int nodes) const;
};

}  // namespace muster
