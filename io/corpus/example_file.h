#pragma once
#include "core/job/job.h"
#include "core/task/gold.h"
#include "core/task/schema.h"

namespace sheaf {

/// The examples of an ask job: one question of each chosen context with its answer. Rows are those of a
/// dataset, have the job's own columns or "context" and "question" or "questions", with "answers" or
/// "answer"; those of {"id", "answers"} are joined with the corpus. An answer that is to be copied and does
/// not stand in the context is left out.
Examples read_question_examples(const Job& job, std::vector<std::string>& notices);

/// The examples of `task.examples`, chosen; none where the job names no file. Rows have the job's own
/// columns, or "category" and "document", and "gold"; those of {"id", "gold"} are joined with the corpus. A
/// row whose category the schema lacks, or that gives no attribute of its category a value, is passed over; a
/// value that its attribute's type does not hold, or that is to be copied and does not stand in the document,
/// is left out. Refuses a broken row with its place, and a file without examples. Adds to `notices` what the
/// user should know.
Examples read_examples(const Job& job, const Schema& schema, int32_t positions,
                       std::vector<std::string>& notices);

}  // namespace sheaf
