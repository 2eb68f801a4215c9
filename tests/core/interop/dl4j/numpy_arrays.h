#pragma once

#include "muster/core/tensor/tensor.h"
#include "tests/support/standard.h"

namespace muster::test {

/// The float32 arrays of a file of NumPy's `savez`, in row order.
std::map<std::string, Tensor> readArrays(const std::filesystem::path& npz,
                                         const std::vector<std::string>& names);

}  // namespace muster::test
