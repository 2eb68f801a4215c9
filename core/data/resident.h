#pragma once

#include <map>
#include <mutex>

#include "muster/core/tensor/tensor.h"

namespace muster {

/// Where the numbers of a data set are while a network trains on them.
enum class MemoryPlacement {
  Host,    ///< on the CPU: batches are gathered there and sent
  Device,  ///< the whole set where the network computes: rows' numbers are sent, batches gathered there
};

/// A tensor that also lies on each GPU where somebody asks for it: a data set of which batches name rows.
/// Thread-safe.
class ResidentTensor {
 public:
  /// @param onCpu  [N, ...] RowMajor; shared, not copied, and not to be changed.
  /// @throws InvalidArgument for another one.
  explicit ResidentTensor(Tensor onCpu);
  ResidentTensor(const ResidentTensor&) = delete;
  ResidentTensor& operator=(const ResidentTensor&) = delete;

  const Tensor& onCpu() const { return onCpu_; }
  /// The same elements on `device`. The first call for a device copies them, once for all networks there; the
  /// copy lives as long as this object. @throws OutOfMemory where they do not fit; DeviceUnavailable.
  const Tensor& on(Device device) const;

 private:
  Tensor onCpu_;
  mutable std::mutex mutex_;
  mutable std::map<Device, Tensor> copies_;  // guarded by mutex_
};

}  // namespace muster
