#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "muster/core/comparison/run_record.h"

namespace muster {

/// The seed of all tuning runs. Give it to no other run, so that what tuning has chosen is not chosen for it.
inline constexpr std::int64_t kTuningSeed = 0;

/// Values to try for what is tuned.
struct TuningChoice {
  std::string text;                        ///< as in `learningRate=0.03`
  std::vector<std::string> settings = {};  ///< what it sets
};

/// How an arm was tuned. Without choices it was not: it sets the tuned fields itself, or has none of them.
struct TunedArm {
  std::string arm;
  std::vector<TuningChoice> choices;
  std::vector<double> losses;  ///< [choice] on the validation data; not finite: failed
  std::size_t best = 0;
  double seconds = 0;                   ///< of training, all choices
  std::int64_t threads = 0, cores = 0;  ///< of a training whose threads shared cores; 0: of none
  bool loaded = false;                  ///< RunRecord's, of any of the trainings
  double othersBusy = 0;                ///< RunRecord's, the most of them

  bool oversubscribed() const { return threads > cores; }

  /// Whether every choice failed.
  bool failed() const;
  /// Whether one list of numbers was tried, and the best is the smallest or the largest of them.
  bool atEnd() const;
};

/// Chooses by the smallest loss at the end of a run, the first of equal ones.
/// @param runs  [choice] tested on validation data, at least one.
TunedArm chooseTuning(std::string arm, std::vector<TuningChoice> choices,
                      std::span<const RunRecord* const> runs);

}  // namespace muster
