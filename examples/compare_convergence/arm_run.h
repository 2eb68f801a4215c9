#pragma once

#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "examples/compare_convergence/recorder.h"
#include "examples/compare_convergence/run_record.h"
#include "examples/support/watching.h"
#include "muster/core/nn/network.h"
#include "muster/datasets/image_set.h"

namespace convergence {

/// What all arms of a comparison have in common.
struct Setting {
  std::shared_ptr<const muster::ImageSet> trainingImages, testImages;
  std::int64_t trainingExamples = 0, testExamples = 0;  ///< the first ones of each set
  std::int64_t epochs = 1;
  std::int64_t testEvery = 6000;  ///< samples
  double momentum = 0.9;          ///< of nesterovs
  double l2 = 5e-4;
  std::string model = "convnet";  ///< or resnet18
  std::int64_t width = 64;        ///< of resnet18
  bool cosine = false;            ///< the learning rate falls to 0 along half a cosine
  bool pinThreads = true;
  example::WatchOptions watch = {};  ///< each run has a directory of its own below

  std::int64_t samples() const { return trainingExamples * epochs; }
};

struct ArmRun {
  RunRecord record;
  std::vector<Merge> merges;
  bool finished = false;  ///< false if `stop` ended the run: discard the record
};

/// The network that every arm trains, with the first weights of `seed`.
std::unique_ptr<muster::Network> networkOf(const Arm& arm, std::int64_t seed, const Setting& setting);

/// Trains one arm from the beginning. Arms with the same seed start from the same parameters and see the
/// images in the same order. A training whose loss becomes NaN or infinite ends and is recorded as a failure.
/// @throws TrainingError for any other failure.
ArmRun runArm(const Arm& arm, std::int64_t seed, const Setting& setting,
              const std::function<void(std::int64_t samples)>& progress, const std::stop_token& stop);

/// Trains a few steps of an arm and discards them, so that one-time costs of the process are not measured in
/// the first run.
void warmUp(const Arm& arm, const Setting& setting, const std::stop_token& stop);

}  // namespace convergence
