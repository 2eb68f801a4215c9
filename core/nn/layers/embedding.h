#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "muster/core/nn/module.h"

namespace muster {

/// Looks up a vector for each index: int64 [T] to [T, features]. Reads the batch's features as indices, 0 to
/// vocabulary - 1, so it must be the first layer; an index out of range is an error that names the example
/// and the position. Masked steps give zeros for any index. Parameter: weight [vocabulary, features].
struct Embedding {
  static constexpr std::string_view kType = "embedding";
  static constexpr PaddingUse kPaddingUse = PaddingUse::ReadsMask;
  static constexpr bool kIndexInput = true;

  std::int64_t vocabulary = 0;
  std::int64_t features = 0;
  Init init = Init::normal(1);
  std::string name = {};

  Shape outputShape(const Shape& input) const;
  std::vector<ParameterSpec> parameters(const Shape& input) const;
  std::unique_ptr<ModuleProgram> compile(const ModuleBinding& binding, Context& context) const;
  void fields(Fields& f);
  void validate() const;
};

}  // namespace muster
