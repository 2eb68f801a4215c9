#include <dlfcn.h>
#include <doctest/doctest.h>

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "muster/core/backend/cuda/owners.h"
#include "muster/core/base/error.h"
#include "muster/core/ops/conv2d.h"
#include "tests/support/skip.h"

// What the real libraries say of descriptions like those that plans make; where they are installed, a GPU is
// not needed.

namespace muster::cuda {
namespace {

using OutputOf = decltype(&::cudnnGetConvolution2dForwardOutputDim);

/// Of the parts of cuDNN that are open.
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

TensorOwner tensorOf(const Shape& shape, cudnnTensorFormat_t format, cudnnDataType_t type) {
  auto tensor =
      make<TensorOwner>([](auto* made) { MUSTER_CUDA_CHECK(dnn().cudnnCreateTensorDescriptor(made)); });
  const auto [n, c, h, w] = sizes(shape);
  MUSTER_CUDA_CHECK(dnn().cudnnSetTensor4dDescriptor(tensor.get(), format, type, n, c, h, w));
  return tensor;
}

/// What cuDNN makes of a convolution.
std::array<int, 4> outputByCudnn(const Conv2dShape& s, cudnnTensorFormat_t format, cudnnDataType_t type,
                                 cudnnMathType_t math) {
  const auto x = tensorOf(s.input(), format, type);
  const auto y = tensorOf(s.output(), format, type);  // is taken, too
  const auto filter =
      make<FilterOwner>([](auto* made) { MUSTER_CUDA_CHECK(dnn().cudnnCreateFilterDescriptor(made)); });
  const auto [out, in, height, width] = sizes(s.weight());
  MUSTER_CUDA_CHECK(dnn().cudnnSetFilter4dDescriptor(filter.get(), type, format, out, in, height, width));
  const auto convolution = make<ConvolutionOwner>(
      [](auto* made) { MUSTER_CUDA_CHECK(dnn().cudnnCreateConvolutionDescriptor(made)); });
  const auto number = [](std::int64_t value) { return static_cast<int>(value); };
  MUSTER_CUDA_CHECK(dnn().cudnnSetConvolution2dDescriptor(
      convolution.get(), number(s.padding[0]), number(s.padding[1]), number(s.stride[0]), number(s.stride[1]),
      number(s.dilation[0]), number(s.dilation[1]), CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT));
  MUSTER_CUDA_CHECK(dnn().cudnnSetConvolutionGroupCount(convolution.get(), number(s.groups)));
  MUSTER_CUDA_CHECK(dnn().cudnnSetConvolutionMathType(convolution.get(), math));
  std::array<int, 4> output{-1, -1, -1, -1};
  const OutputOf outputOf = outputFunction();
  MUSTER_CUDA_CHECK(
      outputOf(convolution.get(), x.get(), filter.get(), &output[0], &output[1], &output[2], &output[3]));
  return output;
}

TEST_CASE(
    "cuDNN, which CUDA needs, takes our convolutions in every type and layout, and has our output shapes") {
  try {
    dnn();
  } catch (const DeviceUnavailable& error) {
    return test::skip(error.what());
  }
  if (outputFunction() == nullptr) return test::skip("this cuDNN does not tell a convolution's output shape");
  int checked = 0;
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
            for (const auto format : {CUDNN_TENSOR_NCHW, CUDNN_TENSOR_NHWC})
              for (const auto& [type, math] : {std::pair(CUDNN_DATA_FLOAT, CUDNN_FMA_MATH),
                                               std::pair(CUDNN_DATA_FLOAT, CUDNN_DEFAULT_MATH),
                                               std::pair(CUDNN_DATA_BFLOAT16, CUDNN_TENSOR_OP_MATH)}) {
                INFO("groups ", groups, ", kernel ", kernel, ", stride ", stride, ", padding ", padding,
                     ", dilation ", dilation, ", format ", format, ", type ", type);
                CHECK(outputByCudnn(shape, format, type, math) == expected);
                ++checked;
              }
          }
  CHECK(checked == 3 * 4 * 3 * 3 * 2 * 2 * 3);
}

TEST_CASE("what cuDNN, which CUDA needs, does not take is refused with the call's text") {
  try {
    dnn();
  } catch (const DeviceUnavailable& error) {
    return test::skip(error.what());
  }
  std::string text;
  try {
    tensorOf({0, 1, 1, 1}, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT);
  } catch (const Error& error) {
    text = error.what();
  }
  CHECK_MESSAGE(text.find("cudnnSetTensor4dDescriptor") != std::string::npos, text);
}

TEST_CASE("cuBLASLt, which CUDA needs, takes descriptions of products in every mode") {
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
