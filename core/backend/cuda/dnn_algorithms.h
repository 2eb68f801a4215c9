#pragma once

#include <algorithm>
#include <string>
#include <tuple>
#include <vector>

#include "muster/core/backend/cuda/owners.h"
#include "muster/core/backend/cuda/vendor.h"
#include "muster/core/device/context.h"

namespace muster::cuda {

// Which convolution algorithms of cuDNN are used, and in which order they are tried.

/// cuDNN's math type for a mode. Its default would use TF32 for float32 if the GPU supports TF32.
inline cudnnMathType_t mathTypeOf(MathMode mode) {
  switch (mode) {
    case MathMode::Float32:
      return CUDNN_FMA_MATH;
    case MathMode::TensorFloat32:
      return CUDNN_DEFAULT_MATH;
    case MathMode::BFloat16:
      return CUDNN_TENSOR_OP_MATH;
  }
  return CUDNN_FMA_MATH;
}

inline const char* nameOfMathType(cudnnMathType_t type) {
  switch (type) {
    case CUDNN_DEFAULT_MATH:
      return "default";
    case CUDNN_TENSOR_OP_MATH:
      return "tensor cores";
    case CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION:
      return "tensor cores, converted";
    case CUDNN_FMA_MATH:
      return "fp32";
  }
  return "unknown";
}

// Whether an algorithm transforms its inputs, which makes its sums less exact.
inline bool transforms(cudnnConvolutionFwdAlgo_t algorithm) {
  return algorithm == CUDNN_CONVOLUTION_FWD_ALGO_FFT || algorithm == CUDNN_CONVOLUTION_FWD_ALGO_FFT_TILING ||
         algorithm == CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD ||
         algorithm == CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD_NONFUSED;
}
inline bool transforms(cudnnConvolutionBwdDataAlgo_t algorithm) {
  return algorithm == CUDNN_CONVOLUTION_BWD_DATA_ALGO_FFT ||
         algorithm == CUDNN_CONVOLUTION_BWD_DATA_ALGO_FFT_TILING ||
         algorithm == CUDNN_CONVOLUTION_BWD_DATA_ALGO_WINOGRAD ||
         algorithm == CUDNN_CONVOLUTION_BWD_DATA_ALGO_WINOGRAD_NONFUSED;
}
inline bool transforms(cudnnConvolutionBwdFilterAlgo_t algorithm) {
  return algorithm == CUDNN_CONVOLUTION_BWD_FILTER_ALGO_FFT ||
         algorithm == CUDNN_CONVOLUTION_BWD_FILTER_ALGO_FFT_TILING ||
         algorithm == CUDNN_CONVOLUTION_BWD_FILTER_ALGO_WINOGRAD ||
         algorithm == CUDNN_CONVOLUTION_BWD_FILTER_ALGO_WINOGRAD_NONFUSED;
}

/// Whether an algorithm is deterministic and, in Float32 mode, sums the products themselves.
template <typename Perf>
bool allowed(const Perf& perf, MathMode mode) {
  return perf.status == CUDNN_STATUS_SUCCESS && perf.determinism == CUDNN_DETERMINISTIC &&
         (mode != MathMode::Float32 || !transforms(perf.algo));
}

/// Algorithms that support every shape, are always available, and are documented as deterministic.
inline constexpr auto kUsual =
    std::tuple(CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM, CUDNN_CONVOLUTION_BWD_DATA_ALGO_1,
               CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1);

template <typename Perf>
std::string listOf(const std::vector<Perf>& found) {
  std::string text;
  for (const Perf& perf : found)
    text += fmt::format("{}algorithm {}, math {}, {}deterministic, {} bytes: {}", text.empty() ? "" : "; ",
                        static_cast<int>(perf.algo), static_cast<int>(perf.mathType),
                        perf.determinism == CUDNN_DETERMINISTIC ? "" : "not ", perf.memory,
                        dnn().cudnnGetErrorString(perf.status));
  return text.empty() ? "none" : text;
}

/// The algorithms that cuDNN offers for a pass, fastest first by its own estimate, then the usual algorithm
/// if it is not among them.
template <typename Perf, typename Count, typename Query>
std::vector<Perf> ask(MathMode mode, Count count, Query query) {
  int most = 0;
  MUSTER_CUDA_CHECK(count(&most));
  std::vector<Perf> found(static_cast<std::size_t>(most));
  int given = 0;
  MUSTER_CUDA_CHECK(query(most, &given, found.data()));
  found.resize(static_cast<std::size_t>(given));
  const auto usual = std::get<decltype(Perf::algo)>(kUsual);
  if (std::ranges::find(found, usual, &Perf::algo) == found.end()) {
    Perf perf{};
    perf.algo = usual;
    perf.status = CUDNN_STATUS_SUCCESS;
    perf.determinism = CUDNN_DETERMINISTIC;
    perf.mathType = mathTypeOf(mode);
    found.push_back(perf);
  }
  return found;
}

}  // namespace muster::cuda
