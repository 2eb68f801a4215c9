#pragma once

#include <array>
#include <span>
#include <string>

#include "muster/core/eval/any_evaluation.h"

namespace muster {

/// A sentence if held-out examples are predicted no better than by one answer for all of them, or so little
/// better that it may be chance: the commonest class, or the mean of the numbers. "" if better, or for
/// several labels an example. Says so, too, if all of the numbers are equal.
///
/// May be chance: within one standard error. Of two ways to classify the same examples that is the square
/// root of the number that one of them alone has right (McNemar 1947); of a correlation it is 1 / sqrt(N - 3)
/// of its inverse hyperbolic tangent (Fisher 1921). With class weights each example counts as much as its
/// class weighs, as it does in the loss: the answer is then the class with the largest weight in all, and the
/// standard error is the square root of the sum of the squared weights.
/// @param classWeights  [class] of the training; empty: 1 for each.
std::string guessRemark(const AnyEvaluation& evaluation, std::span<const float> classWeights = {});

/// What few examples, below 1000, say of a score, to follow their number: the 95 % interval of a
/// classification's accuracy, and that they chose the epoch.
/// @param choseEpoch  whether early stopping looked at them, too.
std::string intervalText(const AnyEvaluation& evaluation, bool choseEpoch);

/// The 95 % interval of a share of `examples`, of which it was measured.
/// Source: Wilson 1927, "Probable inference, the law of succession, and statistical inference".
std::array<double, 2> shareInterval(double share, double examples);

}  // namespace muster
