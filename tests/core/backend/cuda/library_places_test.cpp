#include "muster/core/backend/cuda/library_places.h"

#include "tests/support/environment.h"
#include "tests/support/temporary_directory.h"
#include "tests/support/test.h"

namespace muster::cuda {
namespace {

const std::string kName = "libmuster_nobody_has_this.so.9";

/// Makes an empty library `folder`/lib/`kName` of a wheel. @return its file.
std::string makeWheel(const std::filesystem::path& prefix, const char* packages, const char* folder) {
  const auto lib = prefix / "lib" / packages / "nvidia" / folder / "lib";
  std::filesystem::create_directories(lib);
  test::writeFile(lib / kName, "");
  return (lib / kName).string();
}

void makePython(const std::filesystem::path& prefix) {
  std::filesystem::create_directories(prefix / "bin");
  const auto program = prefix / "bin" / "python3";
  test::writeFile(program, "");
  std::filesystem::permissions(program, std::filesystem::perms::owner_all);
}

TEST_CASE("wheels are searched in the environment, the user's folder and that of the first python3 in PATH") {
  const test::TemporaryDirectory folder;
  const auto active = makeWheel(folder / "active", "python3.12/site-packages", "cudnn");
  const auto conda = makeWheel(folder / "conda", "python3.9/site-packages", "cu13");
  const auto user = makeWheel(folder / "home/.local", "python3.11/site-packages", "cudnn");
  const auto first = makeWheel(folder / "first", "python3/dist-packages", "cublas");
  const auto second = makeWheel(folder / "second", "python3.11/site-packages", "cudnn");
  std::filesystem::create_directories(folder / "empty/bin");
  makePython(folder / "first");
  makePython(folder / "second");
  const auto bin = [&](const char* name) { return (folder / name / "bin").string(); };

  const test::Environment noActive("VIRTUAL_ENV", {}), noConda("CONDA_PREFIX", {}),
      home("HOME", (folder / "home").string()),
      path("PATH", bin("empty") + ":" + bin("first") + ":" + bin("second"));
  CHECK(usualPlaces(kName) == std::vector{user, first});
  const test::Environment isActive("VIRTUAL_ENV", (folder / "active").string()),
      isConda("CONDA_PREFIX", (folder / "conda").string());
  CHECK(usualPlaces(kName) == std::vector{active, conda, user, first});
}

TEST_CASE("the search finds nothing in empty folders, or without HOME and PATH") {
  const test::Environment home("HOME", {}), path("PATH", {});
  CHECK(usualPlaces("libmuster_nobody_has_this_either.so").empty());
}

}  // namespace
}  // namespace muster::cuda
