#pragma once

namespace muster::detail {

inline thread_local int vendorCallDepth = 0;

/// Exists while the calling thread is inside a vendor's library, so that tests count only our own
/// allocations.
class VendorCall {
 public:
  VendorCall() { ++vendorCallDepth; }
  ~VendorCall() { --vendorCallDepth; }
  VendorCall(const VendorCall&) = delete;
  VendorCall& operator=(const VendorCall&) = delete;

  /// Whether the calling thread is inside a vendor's library.
  static bool active() { return vendorCallDepth > 0; }
};

}  // namespace muster::detail
