#include "muster/core/ops/detail/expect.h"

#include "muster/core/base/error.h"

namespace muster::detail {

void expectTensor(std::string_view op, std::string_view name, const Tensor& tensor,
                  const Expected& expected) {
  if (tensor.defined() && tensor.shape() == expected.shape && tensor.layout() == expected.layout &&
      tensor.dtype() == expected.dtype && tensor.device() == expected.device) [[likely]]
    return;
  char any = 0;  // a view needs some address to be defined
  const Tensor wanted = Tensor::view(&any, expected.shape, expected.dtype, expected.device, expected.layout);
  throw InvalidArgument(
      fmt::format("{}: {} is {}, expected {}", op, name, tensor.toString(), wanted.toString()));
}

void expectLike(std::string_view op, std::string_view name, const Tensor& tensor, const Tensor& other) {
  expectTensor(op, name, tensor, {other.shape(), other.layout(), DType::Float32, other.device()});
}

void expectOnCpu(std::string_view op, const Tensor& tensor) {
  if (tensor.device().isCpu()) [[likely]]
    return;
  throw DeviceUnavailable(fmt::format("{}: runs on the CPU only, got {}", op, tensor.toString()));
}

}  // namespace muster::detail
