/** The ways in, in one piece, too. */
export { default as Invitation } from './invite.tsx'
export { default as Reset } from './reset.tsx'
export { default as Setup } from './setup.tsx'
export { default as SignIn } from './sign-in.tsx'
