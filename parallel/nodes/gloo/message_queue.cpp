#include "muster/parallel/nodes/gloo/message_queue.h"

#include <chrono>
#include <utility>

#include <gloo/transport/context.h>
#include <gloo/transport/unbound_buffer.h>

namespace muster {
namespace {

/// Longer than any training waits. NodeLink's heartbeats detect a silent node.
constexpr std::chrono::hours kForEver{100};

}  // namespace

void Outcomes::done(int ticket, int node, bool received) {
  const Lock lock(mutex_);
  done_.push_back({ticket, node, received});
  if (news_) news_();
}

void Outcomes::lost(int node, const std::string& why) {
  const Lock lock(mutex_);
  losses_.push_back({node, why});
  if (news_) news_();
}

void Outcomes::failed(std::exception_ptr problem) {
  const Lock lock(mutex_);
  if (!problem_) problem_ = std::move(problem);
  if (news_) news_();
}

void Outcomes::onNews(std::function<void()> news) {
  const Lock lock(mutex_);
  news_ = std::move(news);
}

bool Outcomes::take(std::vector<int>& tickets, const std::function<void(int)>& hear) {
  const Lock lock(mutex_);
  const bool any = !done_.empty();
  for (const Done& one : done_) {
    tickets.push_back(one.ticket);
    if (one.received) hear(one.node);
  }
  done_.clear();
  return any;
}

std::optional<Outcomes::Loss> Outcomes::nextLoss() {
  const Lock lock(mutex_);
  if (problem_) std::rethrow_exception(problem_);
  if (losses_.empty()) return {};
  std::optional<Loss> loss = std::move(losses_.front());
  losses_.pop_front();
  return loss;
}

MessageQueue::Transfer::Transfer(const NodeMessage& what, int number)
    : message(what),
      ticket(number),
      announcement{.channel = what.channel, .bytes = static_cast<std::int64_t>(what.bytes.size())} {}

bool MessageQueue::Transfer::wait(gloo::transport::UnboundBuffer& part) const {
  return message.way == NodeMessage::Way::Send ? part.waitSend(nullptr, kForEver)
                                               : part.waitRecv(nullptr, kForEver);
}

void MessageQueue::Transfer::requireExpected() const {
  const Announcement expected;
  if (announcement.magic != expected.magic || announcement.channel != message.channel)
    throw NodeFailure(fmt::format("node {} has sent bytes that are not a message of muster", message.node));
  const auto bytes = static_cast<std::int64_t>(message.bytes.size());
  if (announcement.bytes != bytes)
    throw NodeFailure(fmt::format("node {} has sent {} bytes where {} were expected", message.node,
                                  announcement.bytes, bytes));
}

void MessageQueue::Transfer::giveUp() {
  for (auto* part : {head.get(), body.get()}) {
    if (!part) continue;
    part->abortWaitRecv();
    part->abortWaitSend();
  }
}

MessageQueue::MessageQueue(std::shared_ptr<gloo::transport::Context> context, Outcomes& outcomes)
    : context_(std::move(context)), outcomes_(outcomes), thread_([this] { run(); }) {}

MessageQueue::~MessageQueue() {
  {
    const Lock lock(mutex_);
    ending_ = true;
    for (Transfer& transfer : transfers_) transfer.giveUp();
    changed_.notify_all();
  }
  thread_.join();
}

void MessageQueue::begin(const NodeMessage& message, int ticket) {
  const Lock lock(mutex_);
  Transfer& transfer = transfers_.emplace_back(message, ticket);
  const auto& bytes = message.bytes;
  transfer.head = context_->createUnboundBuffer(&transfer.announcement, sizeof(Announcement));
  transfer.body = context_->createUnboundBuffer(bytes.data(), bytes.size());
  const auto headName = static_cast<std::uint64_t>(message.channel) << 32U,
             bodyName = headName | bytes.size();
  if (message.way == NodeMessage::Way::Send) {
    transfer.head->send(message.node, headName);
    transfer.body->send(message.node, bodyName);
  } else {
    transfer.head->recv(message.node, headName);
    transfer.body->recv(message.node, bodyName);
  }
  changed_.notify_all();
}

void MessageQueue::run() {
  for (;;) {
    Transfer* transfer = nullptr;
    {
      Lock lock(mutex_);
      while (!ending_ && transfers_.empty()) changed_.wait(lock.native());
      if (ending_) return;
      transfer = &transfers_.front();  // others are added after it, and only this thread removes it
    }
    const bool received = transfer->message.way == NodeMessage::Way::Receive;
    try {
      if (!transfer->wait(*transfer->head)) return;
      if (received) transfer->requireExpected();
      if (!transfer->wait(*transfer->body)) return;
    } catch (const NodeFailure&) {
      return outcomes_.failed(std::current_exception());
    } catch (const std::exception& error) {
      return outcomes_.lost(transfer->message.node, error.what());
    }
    const int ticket = transfer->ticket, node = transfer->message.node;
    {
      const Lock lock(mutex_);
      transfers_.pop_front();
    }
    outcomes_.done(ticket, node, received);
  }
}

}  // namespace muster
