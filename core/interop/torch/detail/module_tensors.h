#pragma once

#include <torch/nn/module.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "muster/core/tensor/tensor.h"

// The tensors of a libtorch module, as TorchModel sorts them into blocks.

namespace muster::detail {

/// A tensor of the module and its place in a block.
struct TorchPlace {
  std::string name;
  at::Tensor tensor;          ///< the module's handle
  at::Tensor values;          ///< a view of the block
  at::Tensor gradients = {};  ///< a view of the gradients' block; undefined for buffers, frozen parameters
};

/// Whether a tensor has the address, element type and sizes of `place`.
bool isAt(const at::Tensor& tensor, const at::Tensor& place);
/// For example "Float [3, 4] on cpu".
std::string described(const at::Tensor& tensor);
/// @throws InvalidArgument naming a tensor that cannot be in a block. @param what  "parameter" or "buffer".
void requireUsable(const std::string& name, const at::Tensor& tensor, std::string_view what);
Shape shapeOf(const at::Tensor& tensor);

/// A module's tensors for one block, each once, even if a shared submodule lists it under two names.
class TorchTensors {
 public:
  void add(const std::string& name, const at::Tensor& tensor) {
    for (const auto& [other, known] : all_)
      if (known.is_same(tensor)) return;
    all_.emplace_back(name, tensor);
  }
  const std::vector<std::pair<std::string, at::Tensor>>& all() const { return all_; }
  bool empty() const { return all_.empty(); }

 private:
  std::vector<std::pair<std::string, at::Tensor>> all_;
};

/// A module's buffers by how they are merged.
struct TorchBuffers {
  TorchTensors means, variances;  // moments, in pairs
  TorchTensors others;            // floating point
  TorchTensors kept;              // the rest: in no block
};

TorchBuffers sortedBuffers(torch::nn::Module& module);
/// The modules that draw random numbers in training.
std::vector<std::string> randomModules(torch::nn::Module& module);

}  // namespace muster::detail
