#include "examples/muster/compare/output_files.h"
#include "tests/support/temporary_directory.h"
#include "tests/support/thrown.h"

namespace comparing {
namespace {

using muster::FileError;
using muster::test::TemporaryDirectory;
using muster::test::thrown;
using muster::test::writeFile;

TEST_CASE("a directory that is not a comparison's is refused, and so is a file of the data in it") {
  const TemporaryDirectory directory;
  muster::RunFile run;
  const auto check = [&](const std::filesystem::path& out) { checkOutput(out, "run.json", run); };
  CHECK_NOTHROW(check(directory / "new"));
  CHECK_NOTHROW(check(directory.path()));
  writeFile(directory / ".lock", "");
  CHECK_NOTHROW(check(directory.path()));
  writeFile(directory / "report.html", "my report");
  CHECK(thrown<FileError>([&] { check(directory.path()); }) ==
        directory.path().string() +
            ": has files, as report.html, and no results.jsonl, so it is not a comparison's; give another "
            "--out");
  std::filesystem::remove(directory / "report.html");
  writeFile(directory / "results.jsonl", "");
  CHECK_NOTHROW(check(directory.path()));
  writeFile(directory / "plots", "mine");
  CHECK(thrown<FileError>([&] { check(directory.path()); }).find("plots") != std::string::npos);
  std::filesystem::remove(directory / "plots");
  run.data.train = (directory / "table.md").string();
  CHECK(thrown<muster::InvalidArgument>([&] {
          check(directory.path());
        }).starts_with("data.train and --out are the same file, "));
}

}  // namespace
}  // namespace comparing
