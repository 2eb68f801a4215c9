#include <dlfcn.h>

#include "muster/core/backend/cuda/dnn_algorithms.h"
#include "muster/core/backend/cuda/dnn_descriptors.h"
#include "muster/core/backend/cuda/owners.h"
#include "muster/core/ops/conv2d.h"
#include "tests/support/skip.h"
#include "tests/support/test.h"

// The real libraries check descriptions like those of plans. Needs the libraries, but no
// GPU.

namespace muster::cuda {
namespace {

using OutputOf = decltype(&::cudnnGetConvolution2dForwardOutputDim);

/// A function of an open part of cuDNN.
OutputOf outputFunction() {
  for (const char* part : {"libcudnn_cnn.so.9", "libcudnn_ops.so.9", "libcudnn_graph.so.9"})
    if (void* const library = ::dlopen(part, RTLD_LAZY | RTLD_NOLOAD))
      if (void* const function = ::dlsym(library, "cudnnGetConvolution2dForwardOutputDim"))
        return reinterpret_cast<OutputOf>(function);
  return nullptr;
}

std::array<int, 4> sizes(const Shape& s) {
  return {static_cast<int>(s[0]), static_cast<int>(s[1]), static_cast<int>(s[2]), static_cast<int>(s[3])};
}

/// cuDNN's answer to a convolution described as plans do.
std::array<int, 4> outputByCudnn(const Conv2dShape& s, Layout layout, MathMode mode) {
  const auto type = mode == MathMode::BFloat16 ? CUDNN_DATA_BFLOAT16 : CUDNN_DATA_FLOAT;
  const auto x = makeTensor(s.input(), layout, type);
  const auto y = makeTensor(s.output(), layout, type);  // is taken, too
  const auto filter = makeFilter(s.weight(), layout, type);
  const auto convolution = makeConvolution(s, mathTypeOf(mode));
  std::array<int, 4> output{-1, -1, -1, -1};
  const OutputOf outputOf = outputFunction();
  MUSTER_CUDA_CHECK(
      outputOf(convolution.get(), x.get(), filter.get(), &output[0], &output[1], &output[2], &output[3]));
  return output;
}

TEST_CASE(
    "cuDNN, which CUDA needs, accepts our convolutions in every type and layout, with our output shapes") {
  try {
    dnn();
  } catch (const DeviceUnavailable& error) {
    return test::skip(error.what());
  }
  if (outputFunction() == nullptr) return test::skip("this cuDNN does not tell a convolution's output shape");
  for (const std::int64_t groups : {1, 2, 6})
    for (const std::int64_t kernel : {1, 2, 3, 5})
      for (const std::int64_t stride : {1, 2, 3})
        for (const std::int64_t padding : {0, 1, 2})
          for (const std::int64_t dilation : {1, 2}) {
            const Conv2dShape shape{.batch = 3,
                                    .inChannels = 6,
                                    .height = 11,
                                    .width = 14,
                                    .outChannels = 12,
                                    .kernel = {kernel, 3},
                                    .stride = {stride, 2},
                                    .padding = {padding, 1},
                                    .dilation = {dilation, 1},
                                    .groups = groups};
            shape.validate();
            const auto expected = sizes(shape.output());
            for (const auto layout : {Layout::RowMajor, Layout::ChannelsLast})
              for (const auto mode : {MathMode::Float32, MathMode::TensorFloat32, MathMode::BFloat16}) {
                INFO("groups ", groups, ", kernel ", kernel, ", stride ", stride, ", padding ", padding,
                     ", dilation ", dilation, ", ", nameOf(layout), ", ", nameOf(mode));
                CHECK(outputByCudnn(shape, layout, mode) == expected);
              }
          }
}

TEST_CASE("cuDNN (needed by CUDA) refuses invalid descriptors, and the error contains the call's text") {
  try {
    dnn();
  } catch (const DeviceUnavailable& error) {
    return test::skip(error.what());
  }
  std::string text;
  try {
    makeTensor({0, 1, 1, 1}, Layout::RowMajor, CUDNN_DATA_FLOAT);
  } catch (const Error& error) {
    text = error.what();
  }
  CHECK_CONTAINS(text, "cudnnSetTensor4dDescriptor");
}

TEST_CASE("cuBLASLt (needed by CUDA) accepts descriptors of matrix products in every math mode") {
  try {
    blas();
  } catch (const DeviceUnavailable& error) {
    return test::skip(error.what());
  }
  const auto set = [](cublasLtMatmulDesc_t description, cublasLtMatmulDescAttributes_t attribute,
                      auto value) {
    MUSTER_CUDA_CHECK(blas().cublasLtMatmulDescSetAttribute(description, attribute, &value, sizeof value));
  };
  for (const auto& [compute, factors] :
       {std::pair(CUBLAS_COMPUTE_32F, CUDA_R_32F), std::pair(CUBLAS_COMPUTE_32F_FAST_TF32, CUDA_R_32F),
        std::pair(CUBLAS_COMPUTE_32F, CUDA_R_16BF)}) {
    const auto description = make<MatmulOwner>([&, how = compute](auto* made) {
      MUSTER_CUDA_CHECK(blas().cublasLtMatmulDescCreate(made, how, CUDA_R_32F));
    });
    for (const auto transposed : {CUBLAS_OP_N, CUBLAS_OP_T}) {
      CHECK_NOTHROW(set(description.get(), CUBLASLT_MATMUL_DESC_TRANSA, transposed));
      CHECK_NOTHROW(set(description.get(), CUBLASLT_MATMUL_DESC_TRANSB, transposed));
    }
    for (const auto epilogue : {CUBLASLT_EPILOGUE_DEFAULT, CUBLASLT_EPILOGUE_BIAS})
      CHECK_NOTHROW(set(description.get(), CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue));
    CHECK_NOTHROW(set(description.get(), CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, CUDA_R_32F));
    const auto matrix = make<MatrixOwner>([type = factors](auto* made) {
      MUSTER_CUDA_CHECK(blas().cublasLtMatrixLayoutCreate(made, type, 20, 30, 20));
    });
    const std::int32_t batch = 5;
    const std::int64_t stride = 600;
    CHECK_NOTHROW(MUSTER_CUDA_CHECK(blas().cublasLtMatrixLayoutSetAttribute(
        matrix.get(), CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batch, sizeof batch)));
    CHECK_NOTHROW(MUSTER_CUDA_CHECK(blas().cublasLtMatrixLayoutSetAttribute(
        matrix.get(), CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride, sizeof stride)));
  }
}

}  // namespace
}  // namespace muster::cuda
