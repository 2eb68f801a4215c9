#pragma once

namespace muster::detail {

inline thread_local int vendorCallDepth = 0;

/// Open while the calling thread is inside a vendor's library, so that a test which counts allocations can
/// tell the library's own from ours.
class VendorCall {
 public:
  VendorCall() { ++vendorCallDepth; }
  ~VendorCall() { --vendorCallDepth; }
  VendorCall(const VendorCall&) = delete;
  VendorCall& operator=(const VendorCall&) = delete;

  /// Whether the calling thread is inside one.
  static bool active() { return vendorCallDepth > 0; }
};

}  // namespace muster::detail
