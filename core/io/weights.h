#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "muster/core/nn/network.h"

namespace muster {

/// Names of layers: here, and in the other system.
using LayerNames = std::vector<std::pair<std::string, std::string>>;

/// How the tensors of a network correspond to those of PyTorch's `state_dict()` in a safetensors file.
///
/// A tensor is called by its layer's name and its own: `stem.weight` here is `conv1.weight` there with the
/// pair {"stem", "conv1"}. `gamma`, `beta`, `mean` and `variance` of normalisations are `weight`, `bias`,
/// `running_mean` and `running_var` there; the tensors of LSTM and GRU are those of torch.nn.LSTM and GRU
/// with one layer, and those of SelfAttention those of torch.nn.MultiheadAttention. Shapes and orders are the
/// same: OIHW, [out, in], gates i, f, g, o and r, z, n. PyTorch adds two biases in a recurrent layer, here
/// they are one where that is the same: it is written as `bias_ih_l0` with a `bias_hh_l0` of zeros. F16 and
/// BF16 are read as float32.
struct WeightOptions {
  LayerNames layers = {};  ///< those that have other names there
  /// Layers that are left as they are when weights are loaded: the new head of a pre-trained network.
  std::vector<std::string> keep = {};
  /// Tensors of the file that are not read: ends of names, as in "fc.weight". Always: `num_batches_tracked`.
  std::vector<std::string> ignore = {};
  /// PyTorch's running variances are unbiased, those here are not. With the number of examples in a batch of
  /// the training they are converted, by (n - 1) / n for the n values of a channel in such a batch; 0: they
  /// are taken as they are.
  std::int64_t batch = 0;
};

/// Reads parameters and statistics into an initialised network; updater's state and counters become those of
/// `init`. Nothing changes unless all fits.
/// @throws InvalidArgument before `init()`, or for a layer in the options that the network does not have;
///         FileError with all tensors that are missing, unexpected, or of another shape or type; OutOfMemory
///         naming the file.
void loadWeights(Network& network, const std::filesystem::path& path, const WeightOptions& options = {});

/// Writes parameters and statistics in the same way:
/// `model.load_state_dict(safetensors.torch.load_file(path))` reads them. Atomic. `keep` and `ignore` are not
/// read.
/// @throws InvalidArgument as above; FileError; OutOfMemory naming the file.
void saveWeights(Network& network, const std::filesystem::path& path, const WeightOptions& options = {});

}  // namespace muster
