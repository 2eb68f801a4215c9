// Trainings of a libtorch module over processes that mpirun starts on this machine.
#include "tests/core/interop/torch/conv_net.h"

#include "tests/support/state_bits.h"
#include "tests/support/temporary_directory.h"
#include "tests/support/test.h"
#include "tests/support/toy_wrapper.h"

namespace muster::test {
namespace {

TEST_CASE("two processes train a libtorch module to the bits of one process") {
  constexpr int kNodes = 2, kWorkers = 2;
  const TemporaryDirectory folder;
  const auto command = fmt::format(
      "timeout -k 5 200 {} --allow-run-as-root --oversubscribe --mca btl_vader_single_copy_mechanism none "
      "--mca mpi_yield_when_idle 1 -n {} {} {} {} > {}/output 2>&1",
      MUSTER_MPIRUN, kNodes, MUSTER_TORCH_NODE, kWorkers, folder.path().string(), folder.path().string());
  const int status = std::system(command.c_str());
  CAPTURE(readFile(folder / "output"));
  REQUIRE(status == 0);
  auto model = convModel();
  auto data = imageBatches(13);  // 13 batches for 4 workers, merged every 2: a last round of a part
  toyWrapper(*model, kNodes * kWorkers, 2).groups(kNodes).build().fit(data, 2);
  const auto bits = stateBits(*model);
  const std::string expected(reinterpret_cast<const char*>(bits.data()), bits.size());
  for (int node = 0; node < kNodes; ++node) CHECK((readFile(folder / std::to_string(node)) == expected));
}

}  // namespace
}  // namespace muster::test
