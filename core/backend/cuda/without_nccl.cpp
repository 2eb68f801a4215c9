// Replaces nccl.cpp if NCCL's headers were not found.
#include "muster/core/base/error.h"
#include "muster/core/tensor/device_copies.h"

namespace muster::cuda {

std::string whyNoNccl() {
  return "this build was made without NCCL's headers";
}

std::unique_ptr<DeviceCopies> makeNcclCopies(std::vector<Context*>) {
  throw DeviceUnavailable("NCCL: " + whyNoNccl());
}

}  // namespace muster::cuda
