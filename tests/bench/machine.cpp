#include "tests/bench/machine.h"

#include <fmt/format.h>
#include <sched.h>

#include <barrier>
#include <cstdint>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

#include "muster/core/backend/cpu/simd.h"
#include "muster/core/device/device.h"
#include "tests/bench/timing.h"

namespace muster::bench {

namespace {

constexpr int kSums = 12;                    // independent, to hide the latency of an addition
constexpr std::int64_t kLoops = 1 << 16;     // between two readings of the clock
constexpr std::size_t kCopied = 64UL << 20;  // bytes

/// A function, because GCC splits vectors wider than the baseline's before it inlines. It returns a value
/// that depends on all sums.
#define MUSTER_MULTIPLY_AND_ADD(name, bytes)                                                      \
  float name(float start) {                                                                       \
    typedef float Floats __attribute__((vector_size(bytes)));                                     \
    Floats sums[kSums];                                                                           \
    for (int i = 0; i < kSums; ++i) sums[i] = Floats{} + (start + static_cast<float>(i));         \
    const Floats factor = Floats{} + 0.999f, term = Floats{} + 0.001f;                            \
    for (std::int64_t loop = 0; loop < kLoops; ++loop) {                                          \
      _Pragma("GCC unroll 12") for (int i = 0; i < kSums; ++i) sums[i] = sums[i] * factor + term; \
    }                                                                                             \
    Floats all{};                                                                                 \
    for (int i = 0; i < kSums; ++i) all += sums[i];                                               \
    return all[0];                                                                                \
  }

#if defined(__x86_64__)
[[gnu::target("avx512f,fma"), gnu::noinline]] MUSTER_MULTIPLY_AND_ADD(withAvx512, 64)
    [[gnu::target("avx2,fma"), gnu::noinline]] MUSTER_MULTIPLY_AND_ADD(withAvx2, 32)
#endif
        [[gnu::noinline]] MUSTER_MULTIPLY_AND_ADD(withBaseline, 16)
#undef MUSTER_MULTIPLY_AND_ADD

            struct Loop {
  float (*run)(float);
  int lanes;
};

Loop widest() {
#if defined(__x86_64__)
  if (cpu::instructionSet() == cpu::InstructionSet::Avx512) return {withAvx512, 16};
  if (cpu::instructionSet() == cpu::InstructionSet::Avx2) return {withAvx2, 8};
#endif
  return {withBaseline, 4};
}

struct Rate {
  double perSecond = 0, perProcessorSecond = 0;
};

/// Runs `work` on all threads until the time is over. @param amount  work per call. @return amount per
/// second, summed over the threads.
template <typename Work>
Rate rate(const std::vector<int>& cores, double seconds, double amount, const Work& work) {
  std::barrier start(static_cast<std::ptrdiff_t>(cores.size()));
  std::vector<Rate> rates(cores.size());
  {
    std::vector<std::jthread> threads;
    for (std::size_t t = 0; t < cores.size(); ++t)
      threads.emplace_back([&, t] {
        cpu_set_t own;
        CPU_ZERO(&own);
        CPU_SET(cores[t], &own);
        sched_setaffinity(0, sizeof own, &own);
        auto once = work();
        once();
        start.arrive_and_wait();
        const auto begin = Clock::now();
        const double processor = threadSeconds();
        double calls = 0;
        do {
          once();
          ++calls;
        } while (secondsSince(begin) < seconds);
        rates[t] = {calls * amount / secondsSince(begin), calls * amount / (threadSeconds() - processor)};
      });
  }
  Rate all;
  for (const Rate& one : rates) {
    all.perSecond += one.perSecond;
    all.perProcessorSecond += one.perProcessorSecond;
  }
  return all;
}

}  // namespace

MachineRate measureMachine(int threads, double seconds) {
  auto cores = availableCores();
  if (static_cast<std::size_t>(threads) > cores.size())
    throw std::invalid_argument(fmt::format("{} threads, but there are {} cores", threads, cores.size()));
  cores.resize(static_cast<std::size_t>(threads));
  const Loop loop = widest();
  const Rate operations =
      rate(cores, seconds / 2, 2.0 * static_cast<double>(kLoops) * kSums * loop.lanes,
           [&] { return [run = loop.run, value = 1.0f]() mutable { value = run(value); }; });
  const Rate copies = rate(cores, seconds / 2, 2.0 * kCopied, [] {
    // Each thread touches its own memory first.
    auto from = std::make_shared<std::vector<char>>(kCopied, 'x');
    auto to = std::make_shared<std::vector<char>>(kCopied);
    return [from, to] {
      std::memcpy(to->data(), from->data(), kCopied);
      asm volatile("" ::"r"(to->data()) : "memory");
    };
  });
  return {operations.perSecond, copies.perSecond, operations.perProcessorSecond, copies.perProcessorSecond};
}

}  // namespace muster::bench
