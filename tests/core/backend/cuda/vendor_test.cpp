#include "muster/core/backend/cuda/vendor.h"

#include "tests/support/environment.h"
#include "tests/support/temporary_directory.h"
#include "tests/support/test.h"

namespace muster::cuda {
namespace {

const char* const kMissing = "libmuster_nobody_has_this.so.9";
const char* const kThere = "libm.so.6";  // of the C library

TEST_CASE("a missing library is named, with the loader's message") {
  const auto text = test::thrown<DeviceUnavailable>([] { openLibrary(kMissing, "/nowhere"); });
  CHECK(text == fmt::format("CUDA: {0} cannot be loaded ({0}: cannot open shared object file: No such file "
                            "or directory); set LD_LIBRARY_PATH to its folder",
                            kMissing));
}

TEST_CASE("a library that exists but does not load is not reported as missing") {
  const test::TemporaryDirectory folder;
  const auto place = (folder / "lib").string();
  std::filesystem::create_directories(place);
  test::writeFile(folder / "lib" / kMissing, "");
  const auto text = test::thrown<DeviceUnavailable>([&] { openLibrary(kMissing, place.c_str()); });
  CHECK_CONTAINS(text, fmt::format("; {}/{}: file too short)", place, kMissing));
}

TEST_CASE("a refused library is skipped, and the reason is reported") {
  int asked = 0;
  const auto refuse = [&](void* library) {
    ++asked;
    return std::string(library ? "it is another one" : "");
  };
  const auto text = test::thrown<DeviceUnavailable>([&] { openLibrary(kThere, "/nowhere", refuse); });
  CHECK_CONTAINS(text, fmt::format("({}: it is another one)", kThere));
  CHECK(asked == 1);
  CHECK(openLibrary(kThere, "/nowhere", [](void*) { return std::string(); }) != nullptr);
}

TEST_CASE("a cuDNN whose component libraries are missing is skipped") {
  const auto text =
      test::thrown<DeviceUnavailable>([] { openLibrary(kThere, "/nowhere", whyNotForOurCuda); });
  CHECK_CONTAINS(text, fmt::format("({}: libcudnn_graph.so.9 is not beside it", kThere));
}

}  // namespace
}  // namespace muster::cuda
