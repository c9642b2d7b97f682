// The ways in: one script, which is smaller than one for each.
export { default as SignIn } from './sign-in.tsx'
export { default as Setup } from './setup.tsx'
export { default as Invitation } from './invite.tsx'
export { default as Reset } from './reset.tsx'
