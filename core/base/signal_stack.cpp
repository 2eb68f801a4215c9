#include "muster/core/base/signal_stack.h"

#include <sys/mman.h>

#include <csignal>
#include <cstddef>

namespace muster {
namespace {

class SignalStack {
 public:
  SignalStack() noexcept {
    stack_t before{};
    if (::sigaltstack(nullptr, &before) != 0 || (before.ss_flags & SS_DISABLE) == 0) return;
    void* const memory = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return;
    stack_t own{};
    own.ss_sp = memory;
    own.ss_size = kBytes;
    if (::sigaltstack(&own, nullptr) == 0)
      memory_ = memory;
    else
      ::munmap(memory, kBytes);
  }
  ~SignalStack() {
    if (memory_ == nullptr) return;
    stack_t now{};
    if (::sigaltstack(nullptr, &now) == 0 &&
        now.ss_sp == memory_) {  // else the thread has another one by now
      stack_t none{};
      none.ss_flags = SS_DISABLE;
      ::sigaltstack(&none, nullptr);
    }
    ::munmap(memory_, kBytes);
  }
  SignalStack(const SignalStack&) = delete;
  SignalStack& operator=(const SignalStack&) = delete;

 private:
  /// The registers that the system saves there take up to 11 KiB (AMX).
  static constexpr std::size_t kBytes = std::size_t{64} << 10;

  void* memory_ = nullptr;
};

}  // namespace

void useSignalStack() noexcept {
  static thread_local const SignalStack stack;
  static_cast<void>(stack);
}

}  // namespace muster
