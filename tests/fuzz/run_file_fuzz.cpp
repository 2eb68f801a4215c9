// Run files of the program muster: a run that is read is written back identically, and its rule can be
// created.
#include "muster/parallel/run/run_file.h"

#include "muster/core/base/error.h"
#include "muster/parallel/run/detail/run_settings.h"
#include "tests/fuzz/json_changes.h"
#include "tests/parallel/run/whole_runs.h"

namespace muster::fuzz {
namespace {

void run(ByteSpan bytes) {
  muster::RunFile read;
  try {
    read = muster::RunFile::parse(textOf(bytes));
  } catch (const InvalidArgument& error) {
    return expectReadable(error.what());
  } catch (const DeviceUnavailable& error) {
    return expectReadable(error.what());
  }
  read.makeStrategy(1);
  const std::string text = read.toJson();
  expect(muster::RunFile::parse(text).toJson() == text, "a run that was read and written is another one");
  muster::detail::decisiveFields(read);
}

std::vector<Bytes> seeds() {
  std::vector<Bytes> all;
  for (const std::string_view type : {"csv", "idx", "mnist", "images", "generated"}) {
    auto run = test::whole(type);
    run.network =
        MultiLayerConfiguration{.inputShape = {2}, .layers = {Dense{.units = 3}, Output{.classes = 2}}}
            .toJson();
    if (type == "csv") run.training.strategy = "diloco";
    all.push_back(bytesOf(run.toJson()));
  }
  return all;
}

void mutate(Bytes& bytes, Draw& draw) {
  static const Vocabulary vocabulary = [] {
    std::vector<boost::json::value> documents;
    for (const auto& seed : seeds()) documents.push_back(*jsonIn(textOf(seed)));
    return Vocabulary(documents);
  }();
  bytes = bytesOf(mutateJsonText(textOf(bytes), draw, vocabulary));
}

}  // namespace

const Target targets::run_file{"run_file", &run, &seeds, &mutate};

}  // namespace muster::fuzz
