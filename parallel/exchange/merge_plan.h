#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "muster/core/device/device.h"
#include "muster/parallel/exchange/slice.h"
#include "muster/parallel/exchange/transport.h"

namespace muster {

/// Workers whose replicas are on one device.
struct DeviceGroup {
  Device device;
  std::vector<std::size_t> workers;  // in their order
};

/// @param devices  [worker] @return in the order of their first workers.
std::vector<DeviceGroup> groupByDevice(std::span<const Device> devices);

/// Which device sends which slice to which device, in which order, to merge replicas on several devices:
///
/// 1. each device adds up its weighted replicas in float64, in worker order; a single one is sent as it is;
/// 2. each group receives the slice that it reduces, from the sums of all other groups;
/// 3. each group adds up its slice in float64, in the order of the groups, and rounds it once;
/// 4. each group sends its reduced slice to all others;
/// 5. each device copies the result to its replicas and to its merged copy.
///
/// A device sends and receives 2 (G-1)/G of the block, as in a ring (twice that in step 2 if workers share a
/// device). Unlike in a ring, every sum is formed in one place and in the order of the groups, so its bits
/// depend neither on the transport nor on timing. With one group, one kernel does all of it.
class MergePlan {
 public:
  /// @param kind  how numbers get from device to device; not used with one group.
  MergePlan(std::vector<DeviceGroup> groups, TransportKind kind);

  const std::vector<DeviceGroup>& groups() const { return groups_; }
  const std::vector<std::size_t>& groupOf() const { return groupOf_; }  // [worker]
  TransportKind transport() const { return transport_; }
  void setTransport(TransportKind kind) { transport_ = kind; }

  struct Send {
    std::size_t from = 0, to = 0;
  };
  /// The sends of step 2 or 4. Of every G in a row each group sends one and receives one.
  std::span<const Send> sends() const { return sends_; }
  Slice owned(std::size_t group, std::int64_t elements) const {
    return sliceOf(elements, static_cast<int>(group), static_cast<int>(groups_.size()));
  }

  /// As in "merged on cuda:0", or "merged over 2 devices by NCCL".
  std::string describe() const;

 private:
  std::vector<DeviceGroup> groups_;
  std::vector<std::size_t> groupOf_;
  std::vector<Send> sends_;
  TransportKind transport_;
};

}  // namespace muster
