#include "muster/core/data/resident.h"

#include <utility>

#include "muster/core/base/error.h"

namespace muster {

ResidentTensor::ResidentTensor(Tensor onCpu) : onCpu_(std::move(onCpu)) {
  require(onCpu_.defined() && onCpu_.shape().rank() > 0 && onCpu_.device().isCpu() &&
              onCpu_.layout() == Layout::RowMajor,
          "resident data: expected rows [N, ...] on the CPU, got {}", onCpu_.toString());
}

const Tensor& ResidentTensor::on(Device device) const {
  if (device.isCpu()) return onCpu_;
  const Lock lock(mutex_);
  Tensor& copy = copies_[device];
  if (!copy.defined()) copy = copyTo(onCpu_, device);
  return copy;
}

}  // namespace muster
