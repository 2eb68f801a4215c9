#pragma once

#include <span>
#include <string>
#include <vector>

#include "muster/core/device/device.h"
#include "muster/parallel/exchange/exchange.h"
#include "muster/parallel/exchange/transport.h"

namespace muster {

/// A worker's, group's or participant's number as the index of a vector.
inline std::size_t at(int index) {
  return static_cast<std::size_t>(index);
}

/// Workers whose replicas are on one device.
struct DeviceGroup {
  Device device;
  std::vector<int> workers;  // in their order
};

/// Groups in the order of their first workers.
/// @param devices  [worker]
std::vector<DeviceGroup> groupByDevice(std::span<const Device> devices);

/// A slice that one group sends to another.
struct Send {
  int from = 0, to = 0;
  Slice slice;
};

/// Which device sends which slice to which device, in which order, to merge replicas on several devices:
///
/// 1. each device adds up its weighted replicas in float64, in worker order; a single replica is sent as it
/// is;
/// 2. `scatter`: each group receives the slice that it reduces, from the sums of all other groups;
/// 3. each group adds up its slice in float64, in the order of the groups, and rounds it once;
/// 4. `gather`: each group sends its reduced slice to all others;
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
  /// [worker]
  const std::vector<int>& groupOf() const { return groupOf_; }
  TransportKind transport() const { return transport_; }
  /// Replaces a transport that does not work.
  void setTransport(TransportKind kind) { transport_ = kind; }

  /// Passes of step 2 or 4: in each, every group sends one slice and receives one.
  int rounds() const { return static_cast<int>(groups_.size()) - 1; }
  /// The slice that a group reduces.
  Slice owned(int group, std::int64_t elements) const {
    return sliceOf(elements, group, static_cast<int>(groups_.size()));
  }
  /// The sends of one pass, by sender. Slices may be empty. @param sends  [group] receives them.
  void scatter(int round, std::int64_t elements, std::span<Send> sends) const;
  void gather(int round, std::int64_t elements, std::span<Send> sends) const;

  /// As in "merged on cuda:0", or "merged over 2 devices by NCCL".
  std::string describe() const;

 private:
  std::vector<DeviceGroup> groups_;
  std::vector<int> groupOf_;
  TransportKind transport_;
};

}  // namespace muster
