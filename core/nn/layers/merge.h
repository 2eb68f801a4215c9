#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "muster/core/nn/module.h"

namespace muster {

/// Concatenates its inputs along a dimension: the channels of images [C, H, W], the features of [F] and of
/// sequences [T, F].
struct Merge {
  static constexpr std::string_view kType = "merge";

  /// Dimension without the batch; -1: the channels of images, the last dimension of others.
  std::int64_t axis = -1;
  std::string name = {};

  Shape outputShape(std::span<const Shape> inputs) const;
  std::unique_ptr<VertexProgram> compile(const ModuleBinding& binding, Context& context) const;
  void fields(Fields& f);
  void validate() const;
};

/// Elements [from, to) of a dimension; `axis` as for Merge.
struct Subset {
  static constexpr std::string_view kType = "subset";

  std::int64_t from = 0, to = 0;
  std::int64_t axis = -1;
  std::string name = {};

  Shape outputShape(const Shape& input) const;
  std::unique_ptr<ModuleProgram> compile(const ModuleBinding& binding, Context& context) const;
  void fields(Fields& f);
  void validate() const;
};

}  // namespace muster
