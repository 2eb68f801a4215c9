// In the place of nccl.cpp where NCCL's headers were not found.
#include "muster/core/base/error.h"
#include "muster/core/tensor/exchange.h"

namespace muster::cuda {

std::string whyNoNccl() {
  return "this build was made without NCCL's headers";
}

std::unique_ptr<Exchange> makeNcclExchange(std::vector<Context*>) {
  throw DeviceUnavailable("exchange: " + whyNoNccl());
}

}  // namespace muster::cuda
