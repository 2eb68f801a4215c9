#include "examples/support/training_json.h"

#include "muster/core/io/atomic_file.h"

namespace example {

void TrainingJson::write(const std::filesystem::path& path) const {
  muster::JsonWriter json;
  json.put("data", data);
  json.put("dataFrom", dataFrom);
  options(json);
  json.put("plan", plan);
  json.put("interrupted", interrupted);
  json.list("epochs", epochs.size(), [&](std::size_t i, muster::JsonWriter& one) {
    one.put("epoch", epochs[i].epoch);
    one.put("loss", epochs[i].loss);
    if (epochs[i].testAccuracy) one.put("testAccuracy", *epochs[i].testAccuracy);
    if (epochs[i].trainingSeconds) one.put("seconds", *epochs[i].trainingSeconds);
  });
  muster::writeFileAtomically(path, json.text());
}

}  // namespace example
