#pragma once

#include <memory>
#include <string>

#include "muster/core/nn/module.h"

namespace muster {

/// The real steps of a batch's sequences, float32 [N, T]; undefined if all are. For layers over time.
inline Tensor sequenceMaskOf(const StepInfo& info) {
  return info.sequenceMask ? *info.sequenceMask : Tensor();
}

/// @throws InvalidArgument naming the layer's type and the shape unless it is a sequence [T, F] of at least
///         one step.
void requireSequenceInput(std::string_view type, const Shape& input);

/// A view of a sequence [N, T, F] as an image [N, F, 1, T] in layout channels-last.
Tensor sequenceAsImage(const Tensor& sequence);

/// The last real step of each sequence: [T, F] to [F]. A sequence of padding only gives zeros.
struct LastStep {
  static constexpr std::string_view kType = "laststep";
  static constexpr PaddingUse kPaddingUse = PaddingUse::ReadsMask;

  std::string name = {};

  Shape outputShape(const Shape& input) const;
  std::unique_ptr<ModuleProgram> compile(const ModuleBinding& binding, Context& context) const;
  void fields(Fields& f);
  void validate() const {}
};

/// The mean of each sequence's real steps: [T, F] to [F]. A sequence of padding only gives zeros.
struct MeanOverTime {
  static constexpr std::string_view kType = "meanovertime";
  static constexpr PaddingUse kPaddingUse = PaddingUse::ReadsMask;

  std::string name = {};

  Shape outputShape(const Shape& input) const;
  std::unique_ptr<ModuleProgram> compile(const ModuleBinding& binding, Context& context) const;
  void fields(Fields& f);
  void validate() const {}
};

}  // namespace muster
