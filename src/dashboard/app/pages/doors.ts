// The ways in: loaded together, for whoever needs one may need another.
export { default as SignIn } from './sign-in.tsx'
export { default as Setup } from './setup.tsx'
export { default as Invitation } from './invite.tsx'
export { default as Reset } from './reset.tsx'
