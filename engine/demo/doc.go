// Package demo is patio's built-in scripted model, served as an OpenAI-compatible chat-completions API so that a session
// can be tried, shown or tested without a key; it holds no AI, says so wherever it is named, and must never act on
// anything itself: it only asks Pi to call tools.
//
// What it does follows from the conversation in the request alone, so it keeps no state and a repeated request gets the
// same answer. Any prompt to any of its models may hold directives: a keyword in capitals at the start of a line,
// followed by a colon.
//
//	RUN: command         call bash with exactly this text, then answer with its output, verbatim. The lines that
//	                     follow belong to the command, up to the next directive or the end of the prompt.
//	WRITE: path          call write. The lines that follow are the content; without any it is one fixed line.
//	TOOL: name {json}    call any tool with these arguments ({} if left out), which may go on over the next lines;
//	                     answer with its result, verbatim.
//	TEXT: n [bytes]      answer with exactly n bytes of text.
//	THINK: text          think aloud (reasoning_content): this text, or that many bytes for "n" or "n bytes".
//	IMAGE:               answer with type, size and digest of each image received.
//	FAIL: status [text]  answer with this HTTP status (400 to 599) and an error body of OpenAI's shape.
//	SLOW: ms             wait that long between the pieces of every streamed answer to this prompt.
//
// Directives are carried out in the order they stand in: one tool call an answer, with the THINK, TEXT and IMAGE before
// it in the same answer, then the last answer with all results and what follows the last call. FAIL ends the list. All
// other lines are free text. A prompt without RUN, WRITE, TOOL, TEXT, IMAGE or FAIL gets what its model does by itself
// with the free text: see Models.
package demo
