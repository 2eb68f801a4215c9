#pragma once

#include <map>

#include "muster/core/base/mutex.h"
#include "muster/core/tensor/tensor.h"

namespace muster {

/// Where a data set is stored while a network trains on it.
enum class MemoryPlacement {
  Host,    ///< in host memory: batches are gathered there and sent
  Device,  ///< on the network's device: row numbers are sent, batches are gathered there
};

/// A data set whose rows batches refer to; copied to each GPU that requests it. Thread-safe.
class ResidentTensor {
 public:
  /// @param onCpu  [N, ...] RowMajor; shared, not copied; must not change.
  /// @throws InvalidArgument for another tensor.
  explicit ResidentTensor(Tensor onCpu);
  ResidentTensor(const ResidentTensor&) = delete;
  ResidentTensor& operator=(const ResidentTensor&) = delete;

  const Tensor& onCpu() const { return onCpu_; }
  /// The same elements on `device`. The first call for a device copies them, once for all networks there; the
  /// copy lives as long as this object. @throws OutOfMemory if they do not fit; DeviceUnavailable.
  const Tensor& on(Device device) const;

 private:
  Tensor onCpu_;
  mutable Mutex mutex_;
  mutable std::map<Device, Tensor> copies_ MUSTER_GUARDED_BY(mutex_);
};

}  // namespace muster
