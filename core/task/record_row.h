#pragma once

#include "core/task/task.h"

namespace sheaf {

/// All answers and values of a row, in their order.
std::vector<RowAnswer*> answers_of(RowContent& content);

/// What decoding a record gave.
struct Outcome {
  std::vector<Answer>
      answers;        ///< one per question; of a split document those of its first part, its second, …
  int32_t parts = 1;  ///< parts of the document, where it was split
  int32_t document_tokens = 0;  ///< before it was cut or split
  int32_t prompt_tokens = 0;    ///< all that is asked: instruction, document and questions
  int32_t cut_tokens = 0;       ///< document tokens left out at its end
  double seconds = 0;           ///< from the moment the engine took it until its last answer was complete
};

/// The row of a record as it is written: what its task makes of the answers, those of a split document's
/// parts brought together, and what else the job asks for.
Row record_row(const Task& task, const Record& record, const Outcome& outcome, const Job::Output& output);

/// Brings the rows of a split document's parts together. An answer or value is that of the part which found
/// it with the highest mean log-probability a token; lists are joined. `scores`: per part and answer.
Row merge_part_rows(std::vector<Row> rows, const std::vector<std::vector<double>>& scores);

/// What a job wants to know of its answers beside themselves; nothing where that is nothing. `null`: how null
/// begins; empty: the question has none.
std::shared_ptr<const Watch> make_watch(const Job& job, const Tokens& null);

/// How the job searches for the texts that answers copy; nothing where it takes them token by token.
std::shared_ptr<const AnswerSearch> make_search(const Job& job);

/// Notes that a likelier text may exist, where the search for it ended at its limit.
void note_search(const Answer& answer, RowAnswer& read);

/// How likely what was read from an answer is, against null and against the best alternative: in [0, 1].
/// docs/confidence.md defines it. `null`: as above.
double confidence_of(const RowAnswer& read, const Answer& answer, const Tokens& null);

}  // namespace sheaf
