#pragma once

#include <exception>

namespace muster {

/// Whether a training failed because a score, a gradient or a result of an operation is not finite: the
/// failure is a NonFiniteScore, or a TrainingError whose cause is one. False for null.
bool isDivergence(const std::exception_ptr& failure);

}  // namespace muster
