#pragma once

#include <doctest/doctest.h>
#include <sys/resource.h>

#include "tests/fuzz/target.h"
#include "tests/support/sanitizers.h"
#include "tests/support/temporary_directory.h"

namespace muster::fuzz {
/// Limits memory, so that a reader that trusts a declared size fails. Half of it is for the stacks of the
/// threads that train from checkpoints. Sanitizers need the address space and have their own limits.
inline void limitMemory() {
  if (test::kSanitized) return;
  constexpr rlim_t kMost = rlim_t{1} << 31;
  const rlimit limit{kMost, RLIM_INFINITY};
  ::setrlimit(RLIMIT_DATA, &limit);
}

inline std::vector<Bytes> inputsOf(const Target& target) {
  auto inputs = target.seeds();
  const std::filesystem::path folder = std::filesystem::path(MUSTER_FUZZ_CORPUS) / target.name;
  for (const auto& name : test::namesIn(folder)) inputs.push_back(bytesOf(test::readFile(folder / name)));
  return inputs;
}

inline void tryOut(const Target& target, const Bytes& bytes) {
  CAPTURE(target.name);
  try {
    target.run(bytes);
  } catch (const std::exception& error) {
    const auto kept = std::filesystem::temp_directory_path() / ("muster-fuzz-" + std::string(target.name));
    test::writeFile(kept, std::string(textOf(bytes)));
    FAIL("found: " << std::string(error.what()) << "; the input is " << kept.string());
  }
}

/// Runs a target on stored inputs (tests/fuzz/corpus), on generated ones, on some mutations of both and on
/// some of its sweep.
inline void check(const Target& target, int mutations) {
  limitMemory();
  const auto inputs = inputsOf(target);
  for (const auto& input : inputs) tryOut(target, input);
  Draw draw(std::hash<std::string_view>()(target.name));
  for (int i = 0; i < mutations; ++i) {
    Bytes bytes = draw.of(inputs);
    for (std::size_t times = 1 + draw.below(4); times-- > 0;)
      draw.oneIn(4) ? mutateBytes(bytes, draw) : target.mutate(bytes, draw);
    tryOut(target, bytes);
  }
  if (!target.sweep) return;
  constexpr std::size_t kStep = 97;
  const auto sweep = target.sweep();
  for (std::size_t number = 0; number < sweep.size; number += kStep) tryOut(target, sweep.at(number));
}

}  // namespace muster::fuzz

#define MUSTER_FUZZ_CASE(title, target, mutations)                 \
  TEST_CASE("fuzzing: " title) {                                   \
    muster::fuzz::check(muster::fuzz::targets::target, mutations); \
  }
