#include "muster/core/backend/cpu/onednn.h"

#include "tests/support/test.h"

namespace muster {

TEST_CASE("an error of oneDNN names the function that failed, without its arguments") {
  const auto run = [](dnnl_status_t status) {
    cpu::runVendor([&] { return status; }, "dnnl_sgemm('N', 'T', batch_, out_, in_, 1.0f, x.data<float>())");
  };
  CHECK_NOTHROW(run(dnnl_success));
  const auto memory = test::thrown<OutOfMemory>([&] { run(dnnl_out_of_memory); });
  CHECK(memory.starts_with("oneDNN: dnnl_sgemm failed with out_of_memory at onednn_test.cpp:"));
  const auto other = test::thrown<DeviceFailure>([&] { run(dnnl_invalid_arguments); });
  CHECK(other.starts_with("oneDNN: dnnl_sgemm failed with invalid_arguments at onednn_test.cpp:"));
}

}  // namespace muster
