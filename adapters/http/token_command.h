/* token_command.h: `svmstream-http token`: makes a token. */
#ifndef HTTP_TOKEN_COMMAND_H
#define HTTP_TOKEN_COMMAND_H

/* Prints the token on standard output and adds its line to the file, or prints the line on standard error.
 * argv[0] is "token". Returns the exit code: 0, 1 failed, 2 usage. */
int http_token_command_run(int argc, char *const *argv);

#endif
