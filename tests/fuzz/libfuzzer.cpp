// A fuzzer of one target, MUSTER_FUZZ_TARGET, for Clang's libFuzzer. With the arguments "--seeds DIRECTORY"
// it writes its seeds there.
#include <cstdio>

#include "tests/fuzz/target.h"
#include "tests/support/temporary_directory.h"

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t maxSize);

namespace {

using namespace muster::fuzz;

const Target& target() {
  return targets::MUSTER_FUZZ_TARGET;
}

void writeSeeds(const std::filesystem::path& directory) {
  std::filesystem::create_directories(directory);
  int number = 0;
  for (const auto& seed : target().seeds())
    muster::test::writeFile(directory / ("seed-" + std::to_string(number++)), std::string(textOf(seed)));
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  if (*argc == 3 && std::strcmp((*argv)[1], "--seeds") == 0) {
    writeSeeds((*argv)[2]);
    std::exit(0);
  }
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    target().run({data, size});
  } catch (const std::exception& error) {  // sanitizers show where it was thrown only if uncaught
    std::fprintf(stderr, "%s\n", error.what());
    throw;
  }
  return 0;
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t maxSize,
                                               unsigned int seed) {
  static const Sweep sweep = target().sweep ? target().sweep() : Sweep();
  static std::size_t number = 0;
  Bytes bytes(data, data + size);
  if (number < sweep.size) {
    bytes = sweep.at(number++);
  } else {
    Draw draw(seed);
    if (draw.oneIn(3)) return LLVMFuzzerMutate(data, size, maxSize);
    target().mutate(bytes, draw);
  }
  if (bytes.size() > maxSize) bytes.resize(maxSize);
  if (!bytes.empty()) std::memcpy(data, bytes.data(), bytes.size());
  return bytes.size();
}
