#pragma once

#include <functional>
#include <string>
#include <vector>

#include "examples/muster/compare/arms.h"
#include "examples/muster/compare/run_record.h"

namespace comparing {

/// The seed of all tuning runs; no other run has it.
inline constexpr std::int64_t kTuningSeed = 0;

/// Values for the fields that --tune names: one of the combinations to try.
struct Choice {
  std::string text;               ///< `learningRate=0.03`
  std::vector<std::string> sets;  ///< as for --set
};

/// The combinations of the values of all --tune for an arm, in the order given. A field that the arm sets
/// itself, or an option that its strategy does not have, is left out; none is left: the arm is not tuned.
/// @param tune  each `FIELD=VALUE,VALUE...`. @throws InvalidArgument.
std::vector<Choice> choicesOf(const Arm& arm, const std::vector<std::string>& tune, const BaseRun& base);

/// Checks --tune for all arms. @throws InvalidArgument naming what cannot be read or has no arm.
void checkTune(const std::vector<std::string>& tune, const std::vector<Arm>& arms, const BaseRun& base);

/// How an arm was tuned.
struct Tuned {
  std::string arm;
  std::vector<Choice> choices;
  std::vector<double> losses;  ///< [choice] on the validation data; not finite: failed
  std::size_t best = 0;
  double seconds = 0;  ///< of training, all choices

  /// Whether every choice failed.
  bool failed() const;
  /// Whether one list of numbers was tried, and the best is its first or last.
  bool atEnd() const { return choices.size() > 1 && (best == 0 || best + 1 == choices.size()); }
};

/// Chooses by the smallest validation loss, the first of equal ones. @param runs  [choice]
Tuned choose(const Arm& arm, std::vector<Choice> choices, const std::vector<const RunRecord*>& runs);

}  // namespace comparing
