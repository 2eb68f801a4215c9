#include "muster/core/base/unwinder.h"

#if __has_include(<execinfo.h>)
#include <execinfo.h>
#endif

namespace muster {

void loadUnwinder() noexcept {
#if __has_include(<execinfo.h>)
  void* frame = nullptr;
  ::backtrace(&frame, 1);
#endif
}

}  // namespace muster
