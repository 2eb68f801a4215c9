#pragma once

// Visits a run file's fields: the same code reads (JsonReader), writes (JsonWriter) and describes
// (SchemaWriter) it.

#include <algorithm>
#include <concepts>
#include <span>

#include "examples/muster/run_file.h"
#include "muster/core/io/schema_writer.h"

namespace program {

using muster::SchemaWriter;

/// Visits an object that may be missing.
template <typename Visitor, typename T, typename Each>
void optionalGroup(Visitor& v, std::string_view name, std::optional<T>& value, const Each& each) {
  if constexpr (std::same_as<Visitor, muster::JsonWriter>)
    if (!value) return;
  v.group(name, [&](Visitor& in) {
    if (!value) value.emplace();
    each(in, *value);
  });
}

void visitStrategy(muster::JsonReader& reader, RunTraining& training);
void visitStrategy(muster::JsonWriter& writer, RunTraining& training);
void visitStrategy(SchemaWriter& writer, RunTraining& training);

inline bool isOneOf(std::string_view type, std::initializer_list<std::string_view> types) {
  return std::ranges::find(types, type) != types.end();
}

template <typename Visitor>
void visitSource(Visitor& v, RunData& d) {
  const bool published = std::ranges::find(example::kPublishedData, d.type) != example::kPublishedData.end();
  if (published) v.field("directory", d.directory);
  if (published || d.type == "generated") {
    v.field("trainExamples", d.trainExamples);
    v.field("testExamples", d.testExamples);
  }
  if (d.type == "idx") {
    v.field("trainImages", d.trainImages);
    v.field("trainLabels", d.trainLabels);
    v.field("testImages", d.testImages);
    v.field("testLabels", d.testLabels);
    v.field("classes", d.classes);
  }
  if (isOneOf(d.type, {"csv", "images", "safetensors"})) {
    v.field("train", d.train);
    v.field("test", d.test);
  }
  if (d.type == "csv") {
    v.field("header", d.header);
    v.field("label", d.label);
    v.field("separator", d.separator);
    v.field("regression", d.regression);
  }
  if (d.type == "images") v.field("grey", d.grey);
}

/// Visits a text that is one of `words`; the default is the first one.
template <typename Visitor>
void visitWord(Visitor& v, std::string_view name, std::string& value,
               std::span<const std::string_view> words) {
  const auto found = std::ranges::find(words, value);
  auto index = found == words.end() ? 0 : static_cast<std::size_t>(found - words.begin());
  v.choice(name, index, words);
  value = words[index];
}

template <typename Visitor>
void visitData(Visitor& v, RunData& d) {
  if constexpr (std::same_as<Visitor, muster::JsonReader>) v.requireField("type");
  visitWord(v, "type", d.type, kDataTypes);
  visitSource(v, d);
  v.field("validationExamples", d.validationExamples);
  v.field("batch", d.batch);
  v.field("dropLast", d.dropLast);
  v.field("seed", d.seed);
  v.field("shuffle", d.shuffle);
  v.numbers("classWeights", d.classWeights);
}

template <typename Visitor>
void visitTraining(Visitor& v, RunTraining& t) {
  v.field("workers", t.workers);
  visitStrategy(v, t);
  v.field("epochs", t.epochs);
  v.field("prefetch", t.prefetch);
  v.field("threadsPerWorker", t.threadsPerWorker);
  v.field("pinThreads", t.pinThreads);
  v.field("reportScore", t.reportScore);
  v.field("devices", t.devices);
  v.field("placement", t.placement);
  visitWord(v, "mathMode", t.mathMode, kMathModes);
  v.field("groups", t.groups);
  v.field("nodes", t.nodes);
  v.field("initialModel", t.initialModel);
  v.field("resume", t.resume);
  v.field("model", t.model);
}

template <typename Visitor>
void visitMonitor(Visitor& v, RunMonitor& m) {
  v.field("monitor", m.monitor);
  v.field("mode", m.mode);
}

template <typename Visitor>
void visitListeners(Visitor& v, RunListeners& l) {
  v.field("progress", l.progress);
  v.field("scoreEvery", l.scoreEvery);
  v.field("testEvery", l.testEvery);
  v.field("tensorBoard", l.tensorBoard);
  v.field("page", l.page);
  v.field("pagePort", l.pagePort);
  v.field("curves", l.curves);
  v.field("group", l.group);
  optionalGroup(v, "checkpoints", l.checkpoints, [](Visitor& in, RunCheckpoints& c) {
    in.field("directory", c.directory);
    in.field("everyEpochs", c.everyEpochs);
    in.field("everyIterations", c.everyIterations);
    in.field("everyMinutes", c.everyMinutes);
    in.field("keepLast", c.keepLast);
    in.field("keepEveryEpochs", c.keepEveryEpochs);
    optionalGroup(in, "best", c.best, [](Visitor& best, RunMonitor& m) { visitMonitor(best, m); });
  });
  optionalGroup(v, "earlyStopping", l.earlyStopping, [](Visitor& in, RunEarlyStopping& e) {
    visitMonitor(in, e.monitored);
    in.field("everyEpochs", e.everyEpochs);
    in.field("patience", e.patience);
    in.field("minImprovement", e.minImprovement);
    in.field("maxMinutes", e.maxMinutes);
    in.field("restoreBest", e.restoreBest);
    in.field("bestFile", e.bestFile);
  });
}

}  // namespace program
