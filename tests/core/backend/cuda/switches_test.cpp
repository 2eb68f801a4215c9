#include "muster/core/backend/cuda/switches.h"

#include "tests/support/log_lines.h"
#include "tests/support/test.h"

namespace muster::cuda {
namespace {

Switches read(const std::map<std::string, std::string>& environment) {
  return readSwitches([&](const char* name) {
    const auto found = environment.find(name);
    return found == environment.end() ? nullptr : found->second.c_str();
  });
}

TEST_CASE("without variables the switches change nothing and log nothing") {
  const test::LogLines lines;
  const Switches switches = read({{"MUSTER_CUDA_MATH", ""}});
  CHECK(switches.sideStream);
  CHECK(switches.graphs);
  CHECK_FALSE(switches.mathMode);
  CHECK(switches.choiceFor("conv1") == Conv2dChoice::Auto);
  CHECK(lines.all().empty());
}

TEST_CASE("each variable sets one switch, which is logged") {
  const test::LogLines lines;
  CHECK_FALSE(read({{"MUSTER_CUDA_SIDE_STREAM", "0"}}).sideStream);
  CHECK(read({{"MUSTER_CUDA_SIDE_STREAM", "1"}}).sideStream);
  CHECK_FALSE(read({{"MUSTER_CUDA_GRAPHS", "0"}}).graphs);
  CHECK(read({{"MUSTER_CUDA_MATH", "bf16"}}).mathMode == MathMode::BFloat16);
  CHECK(lines.all() == std::vector<std::string>{"warning: MUSTER_CUDA_SIDE_STREAM=0 is set",
                                                "warning: MUSTER_CUDA_SIDE_STREAM=1 is set",
                                                "warning: MUSTER_CUDA_GRAPHS=0 is set",
                                                "warning: MUSTER_CUDA_MATH=bf16 is set"});
}

TEST_CASE("a convolution's choice can be set by layer, or for all other layers at once") {
  const test::LogLines lines;
  const Switches some = read({{"MUSTER_CUDA_CONV2D", "conv1=direct,conv2=padded,conv3=implicit-gemm"}});
  CHECK(some.choiceFor("conv1") == Conv2dChoice::Direct);
  CHECK(some.choiceFor("conv2") == Conv2dChoice::PaddedChannels);
  CHECK(some.choiceFor("conv3") == Conv2dChoice::ImplicitGemm);
  CHECK(some.choiceFor("conv4") == Conv2dChoice::Auto);
  const Switches all = read({{"MUSTER_CUDA_CONV2D", "all=row-major,conv1=auto"}});
  CHECK(all.choiceFor("conv1") == Conv2dChoice::Auto);
  CHECK(all.choiceFor("") == Conv2dChoice::RowMajor);
}

TEST_CASE("names of layers that match no convolution are reported") {
  const test::LogLines lines;
  const Switches some = read({{"MUSTER_CUDA_CONV2D", "all=padded,conv1=direct,covn2=padded,conv9=padded"}});
  CHECK(unknownLayers(some, {}).empty());
  CHECK(unknownLayers(some, {"conv1", "conv2"}) ==
        "MUSTER_CUDA_CONV2D: no convolution so far is that of a layer conv9, covn2; there are conv1, conv2");
  CHECK(unknownLayers(some, {"conv1", "conv9", "covn2"}).empty());
}

TEST_CASE("a value that a variable does not accept is refused by name") {
  const auto told = [](const char* name, const char* value) {
    return test::thrown<InvalidArgument>([&] { read({{name, value}}); });
  };
  CHECK(told("MUSTER_CUDA_GRAPHS", "no") == "MUSTER_CUDA_GRAPHS: expected 0 or 1, got no");
  CHECK(told("MUSTER_CUDA_MATH", "fp16") == "MUSTER_CUDA_MATH: expected fp32, tf32 or bf16, got fp16");
  for (const char* value : {"padded", "conv1=", "=padded", "conv1=fast"})
    CHECK(told("MUSTER_CUDA_CONV2D", value).starts_with("MUSTER_CUDA_CONV2D: expected layer=choice"));
}

}  // namespace
}  // namespace muster::cuda
